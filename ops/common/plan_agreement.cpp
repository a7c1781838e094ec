#include "ops/common/plan_agreement.hpp"

#include <fmt/format.h>

namespace untax {

// Structured bindings name every field of a plan, so a new one cannot be left out here.

std::string fields_of(const gemm_plan& plan) {
  const auto& [world, rank, how, move, workers, movers, tile_m, tile_n, panel_k, cross, collect,
               spread, senders_acquire, reserves_next, band, starts, sets] = plan;
  static_cast<void>(rank);
  return fmt::format(
      "ranks {}, program {}, direction {}, workers {}, movers {}, tile rows {}, tile columns {}, "
      "panel {}, cross {}, collect {}, spread {}, senders acquire {}, reserves next {}, band {}, "
      "starts {}, sets {}",
      world, name_of(how), name_of(move), workers, movers, tile_m, tile_n, panel_k, cross, collect,
      spread, senders_acquire, reserves_next, band, starts, sets);
}

std::string fields_of(const sm90::gemm_plan& plan) {
  const auto& [config, schedule, y_rows, cycles] = plan;
  static_cast<void>(cycles);
  const auto& [columns, cluster, stages, swapped, staging, deep, pieces] = config;
  const auto& [x_tiles, y_tiles, slices, together, clusters, streamed, band, segments,
               part_slices] = schedule;
  return fmt::format(
      "block_n {}, cluster {}, stages {}, swap_ab {}, epilogue buffers {}, warpgroup split-K {}, "
      "cluster split-K {}, x tiles {}, y tiles {}, k-blocks {}, k-blocks of a stage {}, clusters "
      "{}, stream-K tiles {}, raster group {}, raster segments {}, k-blocks of a part {}, y rows "
      "{}",
      columns, cluster, stages, swapped, staging, deep, pieces, x_tiles, y_tiles, slices, together,
      clusters, streamed, band, segments, part_slices, y_rows);
}

void agree_on_lines(world& w, std::string_view operator_name, const plan_lines& lines) {
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) w.note(operator_name, lines[i]);
  w.agree(operator_name, lines.empty() ? "no plan" : lines.back());
}

}  // namespace untax
