#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/comm/bulk_gather.hpp"

namespace untax {

/// By all lanes of a warp: waits for what others send that falls to a sender, so that the kernel
/// behind this one may read it, with TMA, too. The wait record has the sender's number.
__device__ inline void await_incoming(const receiving_grid& incoming, strided share,
                                      const gpu::run_arguments& run, const room_sets& sets,
                                      std::uint64_t epoch) {
  const int set = sets.set_of(epoch);
  const std::uint64_t use = sets.use_of(epoch);
  const gpu::warp_channel channel(run, share.worker);
  // The host reports failed waits.
  (void)channel.acquire(incoming.count(share), [&](int i) {
    const incoming_chunk p = incoming.at(share, set, i);
    room r;
    r.producer = p.source;
    r.number = r.ready = p.ready;
    r.use = use;
    return r;
  });
  // TMA reads what was acquired.
  cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
}

}  // namespace untax
