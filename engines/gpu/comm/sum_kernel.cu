#include "engines/gpu/comm/sinks/owner_sums.cuh"
#include "engines/gpu/comm/sum_kernels.hpp"
#include "engines/gpu/trace/block_run.cuh"
#include "src/symmetric/cuda/driver.hpp"

namespace untax::gpu {
namespace {

/// Sends zeros, for a rank without a shard of k. Called by warp `me` of those that add.
template <class Words>
__device__ void send_zeros(const adding_io& io, int me, std::uint64_t epoch) {
  const float zeros[4] = {};
  const sum_fragments& how = io.how;
  for (int hop = 1; hop <= how.world(); ++hop) {
    const int owner = receiver_at_hop(how.rank(), hop, how.world());
    const int count = how.fragments_of(owner);
    for (int i = me; i < count; i += io.adding_warps) {
      const sum_fragment f = how.fragment_of(owner, i);
      if (how.wanted(owner, f))
        store_sum_words(place_at<Words>(io, owner, f, epoch), Words::of(zeros));
    }
  }
}

__global__ void __launch_bounds__(block_threads, 1)
    adding_kernel(const __grid_constant__ adding_io io, std::uint64_t* epochs) {
  if (io.dry()) return;
  const block_run mine(io.moved.run, epochs[blockIdx.x], warp_role::adder);
  const std::uint64_t epoch = mine.epoch();
  const int me = slot_of_warp();
  if (io.sends_zeros && (!io.how.reserves() || reserve_slabs(io.moved.run, io.how, epoch, me))) {
    if (io.how.halves) {
      send_zeros<partial_words<__half, true>>(io, me, epoch);
    } else {
      send_zeros<partial_words<__half, false>>(io, me, epoch);
    }
  }
  add_sums(io, {io, me}, epoch, me);
  __syncthreads();
  mine.end();
}

}  // namespace

void add_in_own_grid(const adding_io& io, std::uint64_t* epochs, int blocks, cudaStream_t stream) {
  adding_io beside = io;
  use_second_group(beside.moved.run);
  adding_kernel<<<blocks, block_threads, 0, stream>>>(beside, epochs);
  gpu::require(cudaGetLastError(), "cannot start a sum over ranks");
}

}  // namespace untax::gpu
