#pragma once

#include "engines/sm90/gemm/loader.cuh"
#include "engines/sm90/gemm/math.cuh"
#include "engines/sm90/gemm/scout.cuh"
#include "engines/sm90/gemm/storer.cuh"
#include "engines/sm90/ptx/registers.cuh"

// One block on each multiprocessor, and in it, side by side:
//
//   global memory --> loader --[ring of slices]--> math 0, math 1 --[staging]--> storers --> C
//   what of A has come --> scout --^ 1 warp           128 threads each              1 thread each
//
// Sums of tiles that several clusters share go from math to math through global memory, those of
// tiles that the blocks of a cluster share through shared memory.

namespace untax::sm90 {

template <tile_config config>
__device__ void init_barriers(block_memory<config>& shared) {
  constexpr int warps = math_groups * group_threads / 32;
  for (int i = 0; i < config.stages; ++i) {
    shared.full[i].init(1);
    shared.empty[i].init(config.cluster * warps);
  }
  for (int group = 0; group < storing_groups(config); ++group) {
    for (int i = 0; i < config.staging; ++i) {
      shared.staged[group][i].init(group_threads);
      shared.given[group][i].init(1);
    }
    shared.moved[group].init(1);
  }
  shared.arrived.init();
  shared.pieces.init();
  cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
}

template <tile_config config>
[[nodiscard]] __device__ storer_memory storer_memory_of(const block_view<config>& block, int warp) {
  if (warp < 1 || warp > storing_groups(config)) return {};
  return {block.shared.staging[warp - 1][0].rows, &block.shared.moved[warp - 1]};
}

/// What a math warpgroup does, with elements of a type.
template <class T, tile_config config, class Traffic>
__device__ __forceinline__ void run_math(const block_view<config>& block, Traffic& traffic) {
  const int group = static_cast<int>(threadIdx.x) / group_threads - 1;
  if constexpr (Traffic::brings) {
    math_group<T, config, typename Traffic::rows>(block, group, traffic.rows_for(group)).run();
  } else {
    math_group<T, config>(block, group).run();
  }
}

/// The roles of a block that multiplies.
template <tile_config config, class Traffic>
__device__ __forceinline__ void run_roles(const block_view<config>& block, Traffic& traffic) {
  constexpr register_shares registers = Traffic::moves ? registers_with_peers : registers_alone;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool leads = threadIdx.x % 32 == 0;
  int fetched = 0;
  if constexpr (Traffic::moves && reads_early(config)) {
    if (warp == 0)
      fetched =
          slice_loader<config, Traffic>(block, traffic).fetch_early(block.arguments.early_stages);
  }
  if constexpr (Traffic::moves) {
    if (warp < group_threads / 32) traffic.prepare_beside(warp);
  }
  await_kernels_before();
  traffic.begin();
  if (warp >= group_threads / 32) {
    grow_registers<registers.math>();
    // All that depends on the type. A kernel for each would take half as long again to compile.
    if (block.arguments.type == dtype::f16) {
      run_math<__half>(block, traffic);
    } else {
      run_math<__nv_bfloat16>(block, traffic);
    }
    return;
  }
  shrink_registers<registers.mover>();
  if constexpr (Traffic::brings) {
    // What movers read is not held up by so few.
    if (warp == 0 && fetched == 0)
      fetched = slice_loader<config, Traffic>(block, traffic).fetch_early(asked_before_moving);
  }
  if constexpr (Traffic::moves) traffic.beside(warp, storer_memory_of(block, warp));
  if (warp == 0) slice_loader<config, Traffic>(block, traffic, fetched).run();
  if constexpr (Traffic::waits) {
    if (warp == 3 && traffic.scouts()) arrival_scout<config, Traffic>(block, traffic).run();
  }
  if (warp >= 1 && warp <= storing_groups(config)) {
    if (leads) give_places(block, warp - 1);
    if constexpr (Traffic::signals) traffic.before_store();
    if (leads) run_storer(block, traffic, warp - 1);
  }
}

/// C = A * B^T. `Protocol` says where A comes from and C goes to, and what is told to others: see
/// protocol.cuh. (A tile_config in pieces: nvcc takes no structs as template arguments of kernels.)
template <int columns, int cluster, int stages, bool swapped, int staging, bool deep, int pieces,
          class Protocol>
__global__ void __launch_bounds__(block_threads, 1)
    gemm_kernel(const __grid_constant__ gemm_arguments arguments,
                const __grid_constant__ Protocol protocol) {
  constexpr tile_config config{columns, cluster, stages, swapped, staging, deep, pieces};
  constexpr int together = cluster_blocks(config);
  extern __shared__ std::byte memory[];
  if (protocol.dry()) return;
  const auto start = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
  auto& shared =
      *reinterpret_cast<block_memory<config>*>(memory + ((start + 1023) / 1024 * 1024 - start));
  const int number = static_cast<int>(blockIdx.x) - protocol.leading_blocks();
  using traffic_here = typename Protocol::at_block;
  const int in_order = number / together;
  const std::uint32_t in_cluster = together == 1 ? 0 : block_in_cluster();
  // Found while the kernels ahead end, but where movers need the registers.
  const block_view<config> block{shared,
                                 arguments,
                                 in_order,
                                 pieces == 1 ? in_cluster : in_cluster % cluster,
                                 pieces == 1 ? 0 : in_cluster / cluster,
                                 traffic_here::moves && !traffic_here::brings
                                     ? tile_work{}
                                     : arguments.schedule.first(in_order)};
  if (threadIdx.x == 0) {
    prefetch(arguments.a);
    prefetch(arguments.b);
    prefetch(arguments.c);
    init_barriers(shared);
  }
  // Clusters meet without ordering anything but their barriers.
  if constexpr (together == 1 || Protocol::at_block::waits) __syncthreads();
  if constexpr (together > 1) meet_cluster();
  let_next_kernel_start();
  traffic_here traffic(protocol, arguments.a, arguments.b, arguments.c, arguments.schedule.slices);
  if constexpr (traffic_here::moves) {
    static_assert(traffic_here::lead_bytes <= sizeof(block_memory<config>));
    if (number < 0) {
      traffic.prepare_to_lead();
      await_kernels_before();
      traffic.begin();
      traffic.lead(reinterpret_cast<std::byte*>(&shared));
    } else {
      run_roles(block, traffic);
    }
    traffic.finish();
  } else {
    run_roles(block, traffic);
  }

  // Nobody leaves while another block may still write to its shared memory or arrive there.
  if constexpr (together > 1) meet_cluster();
}

}  // namespace untax::sm90
