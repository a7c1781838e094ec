#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/channel/room_waits.cuh"
#include "engines/gpu/comm/bulk_gather.hpp"

namespace untax {

/// By all lanes of a warp: waits for what others send that falls to a sender, so that the kernel
/// behind this one may read it, with TMA, too. The wait record has the sender's number.
__device__ inline void await_incoming(const receiving_grid& incoming, strided share,
                                      const gpu::run_arguments& run, const room_sets& sets,
                                      std::uint64_t epoch) {
  const int set = sets.set_of(epoch);
  const std::uint64_t use = sets.use_of(epoch);
  const gpu::room_waits waits(run, share.worker);
  // The host reports failed waits.
  (void)waits.await(incoming.count(share), [&](int i) {
    const incoming_chunk p = incoming.at(share, set, i);
    if (p.ready < 0) return gpu::pending_wait{};
    const auto ready = static_cast<std::size_t>(p.ready);
    return gpu::pending_wait{run.counters.local(ready), use, 0, p.source, p.ready, verb::acquire};
  });
  // TMA reads what was acquired.
  cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
}

}  // namespace untax
