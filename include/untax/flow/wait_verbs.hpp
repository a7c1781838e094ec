#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <untax/flow/wait.hpp>
#include <untax/rma/check.hpp>
#include <untax/rma/group.hpp>

namespace untax {

/// A group that can wait: it carries the guard that bounds its waits, and knows how to give up.
template <class G>
concept waiting_group = host_group<G> &&
    requires(G& group, wait_outcome outcome, std::string_view name) {
  requires wait_guard<std::remove_reference_t<decltype(group.guard())>>;
  /// Throws untax::error for a wait that did not end well.
  group.fail(outcome, name);
};

/// How a wait is named when it takes too long.
struct awaited {
  name_ref name = "program";  ///< what the program calls this wait, at most 32 characters
  int peer = -1;              ///< the rank that raises the counter, the suspect; -1: not known
  int room = -1;              ///< which of several waits with this name
};

/// Waits until `*counter >= value`, and returns how that ended. Acquire: what was written before
/// the signal is visible to the group after `ok`.
template <waiting_group G>
[[nodiscard]] wait_outcome try_wait_until(G& group, typename G::memory::counter* counter,
                                          std::uint64_t value, const awaited& who = {}) {
  detail::check_address("wait_until", "counter", counter, alignof(typename G::memory::counter));
  const wait_site site{who.name, verb::wait_until, who.peer, who.room, value};
  const wait_outcome outcome = wait_until<typename G::memory>(*counter, site, group.guard());
  group.sync();
  return outcome;
}

/// Waits until `*counter >= value`. Acquire: what was written before the signal is visible to the
/// group after it. The counter lies at this rank, where looking at it is cheap.
///
/// The wait is bounded (UNTAX_WAIT_LIMIT_MS, 20 s unless set). Throws untax::error `timeout` with
/// the name, the peer, the value and what was seen instead; `peer_lost` if the peer ended;
/// `aborted` if another rank gave up.
template <waiting_group G>
void wait_until(G& group, typename G::memory::counter* counter, std::uint64_t value,
                const awaited& who = {}) {
  const wait_outcome outcome = try_wait_until(group, counter, value, who);
  if (outcome != wait_outcome::ok) group.fail(outcome, who.name);
}

}  // namespace untax
