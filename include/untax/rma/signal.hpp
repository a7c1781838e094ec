#pragma once

#include <cstdint>
#include <type_traits>

#include <untax/rma/atomic.hpp>
#include <untax/rma/check.hpp>
#include <untax/rma/copy.hpp>
#include <untax/rma/group.hpp>

// Verbs that signal to a peer that data have arrived. A signal is a 64-bit counter in symmetric
// memory, zero at first and only ever raised. It lies at the rank that waits for it (`wait_until`,
// flow/wait_verbs.hpp). All threads of the group call a verb. Counters that are null or misaligned
// are refused with errc::invalid_argument; so are those outside of an allocation if heaps have
// guards.

namespace untax {

/// Raises `*counter` to `value`, and never lowers it. Release: a rank that sees the value in
/// `wait_until`, or in an acquiring load, sees everything that the group wrote before, at any rank.
///
/// Values are absolute and each counter has one writer, so a signal that comes twice or late does
/// no harm. It does not wait.
template <host_group G>
void signal(const G& group, typename G::memory::counter* counter, std::uint64_t value) {
  detail::check_address("signal", "counter", counter, alignof(typename G::memory::counter));
  detail::check_inside("signal", "counter", counter, sizeof(*counter));
  group.sync();
  if (group.thread_rank() == 0) G::memory::raise_release(*counter, value);
}

/// Adds `amount` to `*counter`. Release. It is for a counter that many writers raise in any order,
/// if the waiter needs only their number. A repeated `signal_add` counts twice, so protocols that
/// must survive one use `signal`.
template <host_group G>
void signal_add(const G& group, std::uint64_t* counter, std::uint64_t amount) {
  detail::check_address("signal_add", "counter", counter, alignof(std::uint64_t));
  group.sync();
  if (group.thread_rank() == 0) atomic_add(counter, amount, memory_order::release);
}

/// `put`, then `signal`: the elements have arrived before the counter says so. A counter that is
/// refused is refused after the put.
template <host_group G, transferable T>
void put_with_signal(const G& group, T* to, const std::type_identity_t<T>* from, std::int64_t count,
                     typename G::memory::counter* counter, std::uint64_t value) {
  put(group, to, from, count);
  signal(group, counter, value);
}

/// `copy` of the part of a tile inside `bounds`, then `signal`.
template <host_group G, transferable T>
void put_with_signal(const G& group, tile_view<T> to, std::type_identity_t<tile_view<const T>> from,
                     tile_bounds bounds, typename G::memory::counter* counter,
                     std::uint64_t value) {
  copy(group, to, from, bounds);
  signal(group, counter, value);
}

/// Orders the puts of this group before its later puts to the same peer. On the host a put is
/// complete when it returns, so there is nothing left to order; on a GPU puts may overtake each
/// other.
///
/// It signals nothing: another rank may read the bytes only after a signal, which orders all puts
/// before it by itself. No operator of untax calls `fence`.
template <host_group G>
void fence(const G& group) {
  group.sync();
}

/// Returns when the puts of this group are complete: the sources may be changed, and a thread that
/// is synchronised with this group may signal for them. On the host they are complete when put
/// returns.
template <host_group G>
void quiet(const G& group) {
  group.sync();
}

}  // namespace untax
