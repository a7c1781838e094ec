#pragma once

#include <cuda/atomic>

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/gemm/io.hpp"

namespace untax {

/// Adds one: releases all stores of this thread, and acquires those of all threads before it.
[[nodiscard]] __device__ inline std::uint64_t count(std::uint64_t& word) {
  return 1 + cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(word).fetch_add(
                 1, cuda::memory_order_acq_rel);
}
/// The epilogue warps of a block wait at the same time, so their wait records have different slots.
[[nodiscard]] __device__ inline int slot_of_storing_warp() {
  return static_cast<int>(blockIdx.x + (threadIdx.x / 32 == 2 ? gridDim.x : 0));
}

/// The verbs of one output on the copies of C. Lane i of the warp handles the rank i + 1 hops away.
template <class Protocol>
class output_channel {
 public:
  __device__ output_channel(const gpu::with_peers<Protocol>& io, int output, std::uint64_t epoch,
                            int slot)
      : io_(io), output_(output), epoch_(epoch), channel_(io.moved.run, slot) {}

  /// Signals to all peers that they may write into this rank's C.
  __device__ void open() const {
    if (gpu::left_out(gpu::mutant::scatter_open)) return;
    channel_.retire(world() - 1, [&](int i) { return landing_from(i, 0); });
  }
  /// Waits until this rank may write into C of all peers.
  [[nodiscard]] __device__ bool reserve() const {
    return channel_.reserve(world() - 1, [&](int i) { return landing_at(i); });
  }
  /// Signals that this output's tiles are complete at all ranks, and waits for the peers' outputs.
  [[nodiscard]] __device__ bool close() const {
    if (!gpu::left_out(gpu::mutant::scatter_publish))
      channel_.publish(world() - 1, [&](int i) { return landing_at(i); });
    if (gpu::left_out(gpu::mutant::results_acquire)) return true;
    return channel_.acquire(world() - 1, [&](int i) { return landing_from(i, output_); });
  }
  /// Waits for the peers' outputs only.
  [[nodiscard]] __device__ bool acquire() const {
    return channel_.acquire(world() - 1, [&](int i) { return landing_from(i, output_); });
  }

 private:
  [[nodiscard]] __device__ int world() const { return io_.how.world(); }
  /// Where this rank's tiles lie at the rank i + 1 hops away.
  [[nodiscard]] __device__ room landing_at(int i) const {
    const int rank = io_.how.rank();
    return io_.how.landing(rank, receiver_at_hop(rank, i + 1, world()), output_, epoch_);
  }
  /// Where the tiles of the source rank i + 1 hops away lie here.
  [[nodiscard]] __device__ room landing_from(int i, int output) const {
    const int rank = io_.how.rank();
    return io_.how.landing(source_at_hop(rank, i + 1, world()), rank, output, epoch_);
  }

  const gpu::with_peers<Protocol>& io_;
  int output_;
  std::uint64_t epoch_;
  gpu::warp_channel channel_;
};

/// One warp of each of `blocks` blocks calls this when its block has stored its part of an output.
/// The last block closes the output. Returns whether this block did. `counted`: in this GPU's
/// memory, a count of blocks over all runs.
template <class Protocol>
__device__ bool close_as_last(const output_channel<Protocol>& output, std::uint64_t& counted,
                              unsigned blocks) {
  const bool last = threadIdx.x % 32 == 0 && count(counted) % blocks == 0;
  const bool closes = __any_sync(0xffffffffU, last) != 0;
  __syncwarp();  // a vote orders no memory
  // The host reports failed waits.
  if (closes) (void)output.close();
  return closes;
}

}  // namespace untax
