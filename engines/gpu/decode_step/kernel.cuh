#pragma once

#include <cstdint>

#include "engines/gpu/decode_step/loaders.cuh"
#include "engines/gpu/decode_step/multiplier.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/sm90/ptx/registers.cuh"
#include "engines/gpu/trace/block_run.cuh"

namespace untax::gpu {

/// All layers of a step, in one kernel whose blocks are all resident. README.md draws it.
template <int head_dim>
__global__ void __launch_bounds__(step_threads, 1)
    decode_step_kernel(const __grid_constant__ step_arguments given) {
  if (given.run.launch < 0) return;
  extern __shared__ __align__(1024) std::byte memory[];
  const step_block block{given, memory};
  const step_shape& shape = given.shape;
  step_numbers& n = block.numbers();
  if (threadIdx.x == 0) {
    n.failed = 0;
    for (int i = 0; i < shape.ring_stages; ++i) {
      n.full[i].init(1);
      n.empty[i].init(step_shape::warps);
    }
    for (int i = 0; i < shape.activation_stages; ++i) {
      n.rows_full[i].init(row_warps * 33);  // each lane's copies, and a lane's own writes
      n.rows_empty[i].init(step_shape::warps);
    }
    for (int i = 0; i < step_shape::vector_stages; ++i) {
      n.vectors_full[i].init(1);
      n.vectors_empty[i].init(step_shape::warps);
    }
    for (int i = 0; i < 4; ++i)
      n.shares[i] = shape.share(static_cast<step_product>(i), static_cast<int>(blockIdx.x));
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
  if (static_cast<int>(threadIdx.x) < shape.tokens)
    n.lengths[threadIdx.x] = given.lengths[threadIdx.x];
  const block_run run(given.run, given.run.epochs[blockIdx.x], warp_role::worker);
  __syncthreads();
  if (static_cast<int>(threadIdx.x) <= shape.windows) {
    const auto windowed = static_cast<int>(threadIdx.x);
    n.item_counts[windowed] =
        key_shares(block, windowed * given.window)
            .list(static_cast<int>(blockIdx.x), block.items() + windowed * shape.item_capacity());
  }
  __syncthreads();
  const std::uint64_t before = (run.epoch() - 1) * static_cast<std::uint64_t>(shape.arrivals()) *
                               static_cast<std::uint64_t>(shape.blocks);
  const int warp = warp_in_block();
  const int slot = static_cast<int>(blockIdx.x) * step_warps + warp;
  if (warp < step_shape::warps) {
    grow_registers<224>();
    step_multiplier<head_dim>(block, before, slot).run();
  } else {
    shrink_registers<56>();
    if (warp == step_shape::warps) {
      constant_loader(block).run();
    } else {
      row_loader(block, before, warp - step_shape::warps - 1).run();
    }
  }
  __syncthreads();
  run.end();
}

}  // namespace untax::gpu
