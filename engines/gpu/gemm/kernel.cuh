#pragma once

#include "engines/gpu/gemm/arrivals.cuh"
#include "engines/gpu/gemm/epilogue.cuh"
#include "engines/gpu/gemm/gated_results.cuh"
#include "engines/gpu/gemm/local_producer.cuh"
#include "engines/gpu/gemm/mma_consumer.cuh"
#include "engines/gpu/gemm/tma_producer.cuh"
#include "engines/gpu/gemm/variant.hpp"
#include "engines/gpu/sm90/ptx/registers.cuh"

// One block per multiprocessor, with these roles side by side:
//
//   A, B --> producer --[ring of k-blocks]--> consumers 0, 1 --[sub-tiles]--> epilogue --> C
//   flags of A --> flag poller --^ 1 warp     128 threads each                1 thread each
//
// Consumers that share a tile pass its sums on: in a cluster through shared memory, else global.

namespace untax::gpu {

template <tile_config config>
__device__ void init_barriers(block_memory<config>& shared) {
  constexpr int warps = mma_warpgroups * warpgroup_threads / 32;
  for (int i = 0; i < config.stages; ++i) {
    shared.full[i].init(1);
    shared.empty[i].init(config.cluster * warps);
  }
  for (int group = 0; group < storing_warpgroups(config); ++group) {
    for (int i = 0; i < config.epilogue_buffers; ++i) {
      shared.epi_full[group][i].init(warpgroup_threads);
      shared.epi_empty[group][i].init(1);
    }
    shared.moved[group].init(1);
  }
  shared.meeting.init(storing_warpgroups(config));
  shared.arrived.init();
  shared.splits.init();
  cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
}

template <tile_config config>
[[nodiscard]] __device__ epilogue_smem epilogue_smem_of(const block_view<config>& block, int warp) {
  if (warp < 1 || warp > storing_warpgroups(config)) return {};
  return {block.shared.epilogue_buffers[warp - 1][0].rows, &block.shared.moved[warp - 1]};
}

/// Runs an MMA warpgroup with elements of type T. For a summing sink, returns what it defers.
template <class T, tile_config config, bool has_ranges, class Source, class Sink>
__device__ __forceinline__ auto run_typed_consumer(const block_view<config>& block, Source& source,
                                                   Sink& sink, int group) {
  if constexpr (summing_sink<Sink>) {
    static_assert(!bringing_source<Source>);
    using results = typename Sink::results;
    return mma_consumer<T, config, has_ranges, no_rows, results>(block, group, {},
                                                                 sink.results_of(group))
        .run()
        .left(block);
  } else if constexpr (bringing_source<Source>) {
    mma_consumer<T, config, false, typename Source::rows>(block, group, source.rows_for(group))
        .run();
  } else if constexpr (adding_sink<Sink>) {
    mma_consumer<T, config, has_ranges, no_rows, typename Sink::peers_partials>(block, group, {},
                                                                                sink.partials())
        .run();
  } else if constexpr (gating_sink<Sink> && has_gates(config)) {
    mma_consumer<T, config, has_ranges, no_rows, gated_results>(block, group, {}, {sink.gated()})
        .run();
  } else {
    mma_consumer<T, config, has_ranges>(block, group).run();
  }
}
/// Runs it with either type. A kernel for each type would take half as long again to compile.
template <tile_config config, bool has_ranges, class Source, class Sink>
__device__ __forceinline__ void run_consumer(const block_view<config>& block, Source& source,
                                             Sink& sink) {
  const int group = static_cast<int>(threadIdx.x) / warpgroup_threads - 1;
  const bool half = block.arguments.type == dtype::f16;
  if constexpr (summing_sink<Sink>) {
    const auto left =
        half ? run_typed_consumer<__half, config, has_ranges>(block, source, sink, group)
             : run_typed_consumer<__nv_bfloat16, config, has_ranges>(block, source, sink, group);
    sink.after_results(block, group, left);
  } else {
    half ? run_typed_consumer<__half, config, has_ranges>(block, source, sink, group)
         : run_typed_consumer<__nv_bfloat16, config, has_ranges>(block, source, sink, group);
  }
}

/// Runs an epilogue warp.
template <tile_config config, class Sink>
__device__ __forceinline__ void run_storing_warp(const block_view<config>& block, Sink& sink,
                                                 int warp) {
  if (warp < 1 || warp > storing_warpgroups(config)) return;
  if constexpr (summing_sink<Sink>) {
    sink.send_buffered(block, warp - 1);
  } else {
    if constexpr (gating_sink<Sink>) {
      if (sink.gated().out != nullptr) return;
    }
    if (elect_one()) release_buffers(block, warp - 1);
    if constexpr (signalling_sink<Sink>) sink.before_store();
    if (elect_one()) run_epilogue(block, sink, warp - 1);
  }
}

/// Whether peers wait until a warp of this kernel has opened C. Loads before that made runs of
/// gemm_all_scatter 2 us longer, with ranks that share a GPU.
template <class Io>
inline constexpr bool opens_first = signalling_sink<typename io_view<Io>::sink_view> &&
                                    !adding_sink<typename io_view<Io>::sink_view>;
/// Whether operands are ready once the previous kernels have ended, so that the first work can be
/// located before that. A summing sink leaves the producer too few registers for it.
template <tile_config config, class Io>
inline constexpr bool reads_present =
    present_source<typename io_view<Io>::source_view> &&
    !(opens_first<Io> && reads_early(config)) && !summing_sink<typename io_view<Io>::sink_view>;

/// The roles of a block that multiplies. Work that accesses no matrix is done before the previous
/// kernels end.
template <tile_config config, class Io>
__device__ __forceinline__ void run_roles(
    const block_view<config>& block, io_view<Io>& io,
    local_producer<config, typename io_view<Io>::source_view>& producer) {
  using source = typename io_view<Io>::source_view;
  using sink = typename io_view<Io>::sink_view;
  constexpr bool present = reads_present<config, Io>;
  constexpr bool loads_first = present && !opens_first<Io>;  // before the epoch is known
  constexpr register_shares registers = !io_view<Io>::has_peers ? registers_alone
                                        : summing_sink<sink> || adding_sink<sink>
                                            ? registers_with_sums
                                            : registers_with_peers;
  const int warp = warp_in_block();
  const auto begin = [&] {
    griddepcontrol_wait();
    io.begin(cluster_blocks(config));
  };
  // The producer warp, if operands are ready at the start. All lanes of the warp call `begin`,
  // since a warp starts to record events as a whole.
  const auto produce = [&](auto& loads) {
    loads.open_first();
    if constexpr (loads_first && kernels_are_traced) begin();
    if (elect_one()) {
      if constexpr (loads_first) griddepcontrol_wait();
      loads.run();
    }
    __syncwarp();
    if constexpr (loads_first && !kernels_are_traced) begin();
  };
  int fetched = 0;
  if constexpr (reads_early(config) && !present) {
    if (warp == 0)
      fetched = tma_producer<config, source>(block, io.source)
                    .load_early_weights(block.arguments.early_stages);
  }
  if (warp < warpgroup_threads / 32) io.senders.prepare_beside(warp);
  if constexpr (!loads_first) begin();
  if (warp >= warpgroup_threads / 32) {
    grow_registers<registers.consumer>();
    if constexpr (loads_first) begin();
    run_consumer<config, adds_ranges(config, registers)>(block, io.source, io.sink);
    return;
  }
  shrink_registers<registers.producer>();
  if constexpr (loads_first) {
    if (warp == 0) return produce(producer);
    begin();
  }
  if constexpr (bringing_source<source>) {
    // These loads are so few that they do not delay the reads of the senders.
    if (warp == 0 && fetched == 0)
      fetched =
          tma_producer<config, source>(block, io.source).load_early_weights(loaded_before_moving);
  }
  io.senders.beside(warp, epilogue_smem_of(block, warp));
  if constexpr (!present) {
    if (warp == 0) tma_producer<config, source>(block, io.source, fetched).run();
  } else if constexpr (!loads_first) {
    if (warp == 0) produce(producer);
  }
  if constexpr (awaited_source<source>) {
    if (warp == 3 && io.source.polls()) flag_poller<config, source>(block, io.source).run();
  }
  if constexpr (adding_sink<sink>) {
    if (warp == 3) io.sink.meet(block.shared.meeting);
  }
  run_storing_warp(block, io.sink, warp);
}

/// C = A * B^T: A from the source, C to the sink; senders run beside them, see io.cuh. It takes the
/// fields of a tile_config, since nvcc takes no structs as template arguments of kernels.
template <int block_n, int cluster, int stages, bool swap_ab, int epilogue_buffers,
          bool warpgroup_split_k, int cluster_split_k, class Source, class Sink, class Senders>
__global__ void __launch_bounds__(block_threads, 1)
    gemm_kernel(const __grid_constant__ gemm_arguments arguments,
                const __grid_constant__ gemm_io<Source, Sink, Senders> given) {
  using all = gemm_io<Source, Sink, Senders>;
  static_assert(tile_source<Source, all> && tile_sink<Sink, all> && tile_senders<Senders, all>);
  using view = io_view<all>;
  constexpr tile_config config{block_n,          cluster,           stages,         swap_ab,
                               epilogue_buffers, warpgroup_split_k, cluster_split_k};
  constexpr int cluster_ctas = cluster_blocks(config);
  extern __shared__ std::byte memory[];
  if (given.dry()) return;
  const auto start = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
  auto& shared =
      *reinterpret_cast<block_memory<config>*>(memory + ((start + 1023) / 1024 * 1024 - start));
  const int number = static_cast<int>(blockIdx.x) - given.comm_cta_count();
  const int in_order = number / cluster_ctas;
  const std::uint32_t in_cluster = cluster_ctas == 1 ? 0 : block_in_cluster();
  constexpr bool present = reads_present<config, all>;
  constexpr bool finds_first = present || bringing_source<typename view::source_view>;
  // The first work is located before the previous kernels end, except where senders need the
  // registers.
  const block_view<config> block{
      trace_of(given),
      shared,
      arguments,
      in_order,
      cluster_split_k == 1 ? in_cluster : in_cluster % cluster,
      cluster_split_k == 1 ? 0 : in_cluster / cluster,
      finds_first && number >= 0 ? arguments.schedule.first(in_order) : work_tile{}};
  // One thread initialises all barriers: several threads side by side take longer.
  if (threadIdx.x == 32) init_barriers(shared);
  if (threadIdx.x == 64) {
    prefetch(arguments.a);
    prefetch(arguments.b);
    prefetch(arguments.c);
  }
  // Between clusters this orders barriers only. Words that `init_barriers` has set need a
  // synchronisation of the block, too.
  constexpr bool sets_words =
      awaited_source<typename view::source_view> || adding_sink<typename view::sink_view>;
  const auto meet = [] {
    if constexpr (cluster_ctas == 1 || sets_words) __syncthreads();
    if constexpr (cluster_ctas > 1) cluster_sync();
    griddepcontrol_launch_dependents();
  };
  view io(given, arguments);
  local_producer<config, typename view::source_view> producer(block, io.source);
  if constexpr (present) {
    if (threadIdx.x < 32 && number >= 0) producer.locate_first();
    if (threadIdx.x == 64) {
      prefetch(arguments.m_tail.map);
      prefetch(arguments.n_tail.map);
    }
  }
  meet();
  if constexpr (view::has_peers) {
    static_assert(view::senders_view::comm_smem_bytes <= sizeof(block_memory<config>));
    if (number < 0) {
      io.senders.prepare_comm();
      griddepcontrol_wait();
      io.begin(cluster_ctas);
      io.senders.run_comm(reinterpret_cast<std::byte*>(&shared));
    } else {
      run_roles(block, io, producer);
    }
    io.finish();
  } else {
    run_roles(block, io, producer);
  }
  note_kernel_end(block);

  // No block exits while another may still write to its shared memory or arrive at its barriers.
  if constexpr (cluster_ctas > 1) cluster_sync();
}

template <tile_config c, class Io>
inline constexpr auto kernel_of =
    &gemm_kernel<c.block_n, c.cluster, c.stages, c.swap_ab, c.epilogue_buffers, c.warpgroup_split_k,
                 c.cluster_split_k, typename Io::source_type, typename Io::sink_type,
                 typename Io::senders_type>;

template <tile_config config, class Io>
kernel_variant variant_of() {
  std::size_t bytes = shared_bytes<config>;
  if constexpr (requires { Io::sink_type::template own_bytes<config>; })
    bytes += Io::sink_type::template own_bytes<config>;
  return {config, reinterpret_cast<const void*>(kernel_of<config, Io>), bytes};
}

}  // namespace untax::gpu
