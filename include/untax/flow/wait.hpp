#pragma once

#include <concepts>
#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/wait_site.hpp>
#include <untax/memory/policy.hpp>

namespace untax {

/// Watches a wait that takes long: it publishes the record of the wait, and checks the limit, the
/// stop flag and lost peers.
template <class G>
concept wait_guard = requires(G& guard, const wait_site& site, std::uint64_t seen,
                              poll_count polls) {
  /// Called if `due` returns true. Any outcome but `ok` ends the wait.
  { guard.look(site, seen) } -> std::same_as<wait_outcome>;
  /// Called once if a wait ends well after `look` was called.
  guard.leave();
  /// Whether to call `look` after this number of polls.
  { guard.due(polls) } -> std::same_as<bool>;
};

/// Waits until `counter >= site.expected`, with acquire order. This is the only loop on memory in
/// untax: every other file calls it, so every wait is bounded and names its suspect.
///
/// The fast path is one load. `guard` is called only if the wait has lasted a while. `wait_until`
/// blocks the calling thread, and throws only what the guard throws.
UNTAX_CALLS_ANY_SIDE
template <memory_policy M, wait_guard Guard>
[[nodiscard]] UNTAX_HOST_DEVICE wait_outcome wait_until(typename M::counter& counter,
                                                        const wait_site& site, Guard& guard) {
  std::uint64_t seen = M::load_acquire(counter);
  poll_count polls = 0;
  bool looked = false;
  while (seen < site.expected) {
    // An inner loop that only polls: otherwise a kernel would jump over the code of the guard at
    // each poll.
    do {
      M::pause(polls);
      seen = M::load_acquire(counter);
    } while (seen < site.expected && !guard.due(polls++));
    if (seen >= site.expected) break;
    looked = true;
    const wait_outcome outcome = guard.look(site, seen);
    if (outcome != wait_outcome::ok) return outcome;
  }
  if (looked) guard.leave();
  return wait_outcome::ok;
}

}  // namespace untax
