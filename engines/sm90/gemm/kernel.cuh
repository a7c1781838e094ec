#pragma once

#include "engines/sm90/gemm/loader.cuh"
#include "engines/sm90/gemm/math.cuh"
#include "engines/sm90/gemm/storer.cuh"
#include "engines/sm90/ptx/registers.cuh"

// One block on each multiprocessor, and in it, side by side:
//
//   global memory --> loader --[ring of slices]--> math 0, math 1 --[staging]--> storers --> C
//                     1 thread                     128 threads each              1 thread each
//
// Sums of tiles that several clusters share go from math to math through global memory.

namespace untax::sm90 {

template <tile_config config>
__device__ void init_barriers(block_memory<config>& shared) {
  constexpr int warps = math_groups * group_threads / 32;
  for (int i = 0; i < config.stages; ++i) {
    shared.full[i].init(1);
    shared.empty[i].init(config.cluster * warps);
  }
  for (int group = 0; group < storing_groups(config); ++group) {
    for (int i = 0; i < staging_buffers; ++i) {
      shared.staged[group][i].init(group_threads);
      shared.taken[group][i].init(1);
    }
  }
  cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
}

/// C = A * B^T. `Protocol` is asked before A is read and told what of C is stored. (A tile_config
/// in pieces: nvcc takes no structs as template arguments of kernels.)
template <class T, int columns, int cluster, int stages, bool swapped, bool deep, class Protocol>
__global__ void __launch_bounds__(block_threads, 1)
    gemm_kernel(const __grid_constant__ gemm_arguments arguments,
                const __grid_constant__ Protocol protocol) {
  constexpr tile_config config{columns, cluster, stages, swapped, deep};
  extern __shared__ __align__(1024) std::byte memory[];
  auto& shared = *reinterpret_cast<block_memory<config>*>(memory);
  const block_view<config> block{shared, arguments, static_cast<int>(blockIdx.x) / config.cluster,
                                 config.cluster == 1 ? 0 : block_in_cluster()};
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool leads = threadIdx.x % 32 == 0;
  if (threadIdx.x == 0) {
    prefetch(arguments.x);
    prefetch(arguments.y);
    prefetch(arguments.c);
    init_barriers(shared);
  }
  if constexpr (config.cluster > 1) {
    meet_cluster();
  } else {
    __syncthreads();
  }
  let_next_kernel_start();

  if (warp < group_threads / 32) {
    shrink_registers<mover_registers>();
    if (leads && warp == 0) loader<config, Protocol>(block, protocol).run();
    if (leads && warp >= 1 && warp <= storing_groups(config)) {
      await_kernels_before();
      run_storer(block, protocol, warp - 1);
    }
  } else {
    grow_registers<math_registers>();
    await_kernels_before();
    math_group<T, config>(block, warp / 4 - 1).run();
  }

  // Nobody leaves while another block may still write to its shared memory or arrive there.
  if constexpr (config.cluster > 1) meet_cluster();
}

}  // namespace untax::sm90
