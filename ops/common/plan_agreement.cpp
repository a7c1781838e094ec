#include "ops/common/plan_agreement.hpp"

#include <fmt/format.h>

namespace untax {

// Structured bindings name every field of a plan, so a new one cannot be left out here.

std::string fields_of(const protocol_plan& plan) {
  const auto& [world, rank, how, move, workers, senders, phases, tile_m, tile_n, panel_k,
               chunk_cross, gather_own, fan_out, senders_acquire, reserves_next, raster_rows,
               k_interleave, sets, capacity] = plan;
  static_cast<void>(rank);
  return fmt::format(
      "ranks {}, program {}, direction {}, workers {}, senders {}, phases {}, tile rows {}, tile "
      "columns {}, "
      "panel {}, chunk cross {}, gather own {}, fan out {}, senders acquire {}, reserves next {}, "
      "raster rows {}, k interleave {}, sets {}{}",
      world, name_of(how), name_of(move), workers, senders, phases, tile_m, tile_n, panel_k,
      chunk_cross, gather_own, fan_out, senders_acquire, reserves_next, raster_rows, k_interleave,
      sets, capacity > 0 ? fmt::format(", any rows up to {}", capacity) : "");
}

std::string fields_of(const gpu::gemm_plan& plan) {
  const auto& [config, schedule, multicast_rows, cycles] = plan;
  static_cast<void>(cycles);
  const auto& [block_n, cluster, stages, swap_ab, epilogue_buffers, warpgroup_split_k,
               cluster_split_k] = config;
  const auto& [m_tiles, n_tiles, k_blocks, k_blocks_per_stage, clusters, stream_k_tiles,
               raster_group, segments, part_k_blocks, range_k_blocks] = schedule;
  return fmt::format(
      "block_n {}, cluster {}, stages {}, swap_ab {}, epilogue buffers {}, warpgroup split-K {}, "
      "cluster split-K {}, M tiles {}, N tiles {}, k-blocks {}, k-blocks of a stage {}, clusters "
      "{}, stream-K tiles {}, raster group {}, raster segments {}, k-blocks of a part {}, "
      "k-blocks of a range {}, multicast rows {}",
      block_n, cluster, stages, swap_ab, epilogue_buffers, warpgroup_split_k, cluster_split_k,
      m_tiles, n_tiles, k_blocks, k_blocks_per_stage, clusters, stream_k_tiles, raster_group,
      segments, part_k_blocks, range_k_blocks, multicast_rows);
}

void agree_on_lines(world& w, std::string_view operator_name, const plan_lines& lines) {
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) w.note(operator_name, lines[i]);
  w.agree(operator_name, lines.empty() ? "no plan" : lines.back());
}

}  // namespace untax
