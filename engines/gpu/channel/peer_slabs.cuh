#pragma once

#include <cstdint>

#include <cuda/atomic>

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/peer_slabs.hpp"
#include "engines/gpu/channel/warp_channel.cuh"

namespace untax::gpu {

/// Waits until all owners have retired what this rank sent before in the set of this epoch. All
/// lanes of a warp must call this; `slot` is its wait record. Returns false if the wait failed:
/// then nothing may be sent.
[[nodiscard]] __device__ inline bool reserve_slabs(const run_arguments& run, const peer_slabs& how,
                                                   std::uint64_t epoch, int slot) {
  if (left_out(mutant::sums_reserve)) return true;
  return warp_channel(run, slot).reserve_free(how.world() - 1, [&](int i) {
    return how.slab(how.rank(), receiver_at_hop(how.rank(), i + 1, how.world()), epoch);
  });
}

/// Each of the `parts` of a rank calls this when it has taken all its words and stored all its
/// results. The last one retires the slabs of all ranks. If owners pass results on, it publishes
/// its own and waits for those of all peers. All lanes of a warp call this, after synchronising
/// with the part's other threads. `done`: in this GPU's memory, parts ended in all runs.
__device__ inline void retire_slabs(const run_arguments& run, const peer_slabs& how,
                                    std::uint64_t& done, int parts, std::uint64_t epoch, int slot) {
  __syncwarp();
  bool last = false;
  if (device_warp::thread_rank() == 0) {
    const std::uint64_t before =
        cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(done).fetch_add(
            1, cuda::memory_order_acq_rel);
    last = before + 1 == epoch * static_cast<std::uint64_t>(parts);
  }
  const bool closes = __any_sync(0xffffffffU, last) != 0;
  __syncwarp();  // a vote orders no memory
  if (!closes) return;
  const int peers = how.world() - 1;
  const warp_channel channel(run, slot);
  const auto source = [&](int i) { return source_at_hop(how.rank(), i + 1, how.world()); };
  if (!left_out(mutant::sums_retire))
    channel.retire(peers, [&](int i) { return how.slab(source(i), how.rank(), epoch); });
  if (!how.passes_on) return;
  channel.publish(peers, [&](int i) {
    return how.landed(how.rank(), receiver_at_hop(how.rank(), i + 1, how.world()), epoch);
  });
  if (left_out(mutant::results_acquire)) return;
  // The host reports a failed wait.
  (void)channel.acquire(peers, [&](int i) { return how.landed(source(i), how.rank(), epoch); });
}

}  // namespace untax::gpu
