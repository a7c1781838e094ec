#pragma once

#include <cstdint>
#include <type_traits>

#include <untax/rma/device_atomic.cuh>
#include <untax/rma/device_copy.cuh>
#include <untax/rma/packet.cuh>
#include <untax/rma/signal.hpp>

// The verbs of rma/signal.hpp for groups of a kernel. The order sits on the counter: the group's
// barrier collects what its threads wrote, and one thread's release hands it on.

namespace untax {

/// A group that can speak for all its threads. The threads of a grid are not synchronised by one
/// barrier.
template <class G>
concept signalling_group = device_group<G> && !std::derived_from<G, device_grid>;

/// Raises `*counter` to `value`, never lowers it. Release: whoever sees the value in wait_until
/// sees everything that the group wrote before, at any rank.
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

/// put_with_signal for a few bytes, in one trip where put_with_signal takes two (it cannot send the
/// counter before the bytes have arrived): the counter travels with the bytes, as packets. They go
/// to packets_for(count) packets of the peer, its mailbox, and receive_small_put there takes them
/// to their place. For up to eight bytes for each thread of the group.
///
/// Release, as signal: whoever receives the message sees everything that the group wrote before.
/// `value` is higher than that of any message before in this mailbox, which has one writer; and the
/// last one was received: the peer said so by a signal or by a message of its own.
template <signalling_group G, packed_element T>
__device__ void small_put_with_signal(const G& group, packet* mailbox, const T* from,
                                      std::int64_t count, std::uint64_t value) {
  group.sync();
  detail::send_message<memory_order::release>(group, mailbox, from, count, value);
}

/// Returns when the puts of this group are complete: another thread of the rank that is
/// synchronised with it may signal for them. It waits until all that the multiprocessor has written
/// has arrived, which a signal does by itself; no operator calls it.
template <signalling_group G>
__device__ void quiet(const G& group) {
  group.sync();
  if (group.thread_rank() == 0)
    cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, cuda::thread_scope_system);
  group.sync();
}

/// Orders the puts of this group before its later puts. Puts may overtake each other otherwise.
template <signalling_group G>
__device__ void fence(const G& group) {
  quiet(group);
}

}  // namespace untax
