#pragma once

#include <cstdint>
#include <type_traits>

#include <untax/rma/device_atomic.cuh>
#include <untax/rma/device_copy.cuh>
#include <untax/rma/packet.cuh>
#include <untax/rma/signal.hpp>

// The verbs of rma/signal.hpp for groups of a kernel; all threads of a group call them with the
// same arguments. The memory order is that of the counter: the group's barrier orders the writes of
// its threads, and one thread releases them. Counters are not checked.

namespace untax {

/// A group whose threads are synchronised by one barrier, so that one of them can signal for all.
/// The threads of a grid are not.
template <class G>
concept signalling_group = device_group<G> && !std::derived_from<G, device_grid>;

/// Raises `*counter` to `value`, and never lowers it. Release: a group that sees the value in
/// `wait_until` sees everything that this group wrote before, at any rank. It does not wait.
template <signalling_group G>
__device__ void signal(const G& group, std::uint64_t* counter, std::uint64_t value) {
  group.sync();
  if (group.thread_rank() == 0) cuda_memory::raise_release(*counter, value);
}

/// Adds `amount` to `*counter`. Release.
template <signalling_group G>
__device__ void signal_add(const G& group, std::uint64_t* counter, std::uint64_t amount) {
  group.sync();
  if (group.thread_rank() == 0) cuda_memory::add_release(*counter, amount);
}

/// `put`, then `signal`: the elements are there before the counter says so.
template <signalling_group G, transferable T>
__device__ void put_with_signal(const G& group, T* to, const std::type_identity_t<T>* from,
                                std::int64_t count, std::uint64_t* counter, std::uint64_t value) {
  detail::move_elements<T>(group, to, from, count);
  signal(group, counter, value);
}

/// `copy` of the part of a tile inside `bounds`, then `signal`.
template <signalling_group G, transferable T>
__device__ void put_with_signal(const G& group, tile_view<T> to,
                                std::type_identity_t<tile_view<const T>> from, tile_bounds bounds,
                                std::uint64_t* counter, std::uint64_t value) {
  detail::move_tile<T>(group, to, from, bounds);
  signal(group, counter, value);
}

/// `put_with_signal` for a few bytes, in one trip to the peer instead of two. `put_with_signal`
/// cannot send the counter before the bytes have arrived; here the epoch travels with the bytes, as
/// packets. They go to packets_for(count) packets in symmetric memory of the peer, its mailbox, and
/// the peer copies them to their place by `receive_small_put`. It pays for up to eight bytes for
/// each thread of the group.
///
/// Release, as `signal`: a group that receives the message sees everything that this group wrote
/// before. A mailbox has one writer. `value` has to be higher than that of any message before in
/// this mailbox, and the last one must have been received: a signal or a message of the peer said
/// so.
template <signalling_group G, packed_element T>
__device__ void small_put_with_signal(const G& group, packet* mailbox, const T* from,
                                      std::int64_t count, std::uint64_t value) {
  group.sync();
  detail::send_message<memory_order::release>(group, mailbox, from, count, value);
}

/// Returns when the puts of this group are complete; then another thread of the rank that is
/// synchronised with the group may signal for them. It waits until all earlier writes of the
/// multiprocessor have arrived. A signal does that by itself, so no operator calls `quiet`.
template <signalling_group G>
__device__ void quiet(const G& group) {
  group.sync();
  if (group.thread_rank() == 0)
    cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, cuda::thread_scope_system);
  group.sync();
}

/// Orders the puts of this group before its later puts. Without it, puts may overtake each other.
template <signalling_group G>
__device__ void fence(const G& group) {
  quiet(group);
}

}  // namespace untax
