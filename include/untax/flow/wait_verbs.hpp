#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <untax/flow/wait.hpp>
#include <untax/rma/check.hpp>
#include <untax/rma/group.hpp>

namespace untax {

/// A group that can wait: it has the guard that bounds its waits, and can throw their failure.
template <class G>
concept waiting_group = host_group<G> &&
    requires(G& group, wait_outcome outcome, std::string_view name) {
  requires wait_guard<std::remove_reference_t<decltype(group.guard())>>;
  /// Throws untax::error for a wait that did not end well.
  group.fail(outcome, name);
};

/// The name of a wait in errors.
struct awaited {
  name_ref name = "program";  ///< the program's name for this wait; 32 characters are kept
  int peer = -1;  ///< the rank that raises the counter, which is the suspect; -1: not known
  int room = -1;  ///< distinguishes waits of one name
};

/// Waits until `*counter >= value`, and returns how the wait ended. Acquire: after `ok`, writes
/// before the signal are visible to the group. All threads of the group call it. Throws
/// `invalid_argument` if the counter is null or misaligned.
template <waiting_group G>
[[nodiscard]] wait_outcome try_wait_until(G& group, typename G::memory::counter* counter,
                                          std::uint64_t value, const awaited& who = {}) {
  detail::check_address("wait_until", "counter", counter, alignof(typename G::memory::counter));
  const wait_site site{who.name, verb::wait_until, who.peer, who.room, value};
  const wait_outcome outcome = wait_until<typename G::memory>(*counter, site, group.guard());
  group.sync();
  return outcome;
}

/// Waits until `*counter >= value`. Acquire: writes before the signal are visible to the group
/// afterwards. All threads of the group call it. The counter lies at this rank, where polling is
/// cheap.
///
/// The wait is bounded (UNTAX_WAIT_LIMIT_MS, 20 s unless set). Throws untax::error: `timeout` with
/// the name, the peer, the value and the value seen instead; `peer_lost` if a rank was lost;
/// `disagreement` if ranks make different calls; `aborted` if another rank failed;
/// `invalid_argument` if the counter is null or misaligned.
template <waiting_group G>
void wait_until(G& group, typename G::memory::counter* counter, std::uint64_t value,
                const awaited& who = {}) {
  const wait_outcome outcome = try_wait_until(group, counter, value, who);
  if (outcome != wait_outcome::ok) group.fail(outcome, who.name);
}

}  // namespace untax
