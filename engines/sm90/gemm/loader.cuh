#pragma once

#include "engines/sm90/gemm/block.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// One thread: brings slices of x and y into the ring, ahead of the math. Each block of a cluster
/// reads its own rows of x, and its share of the rows of y for all.
template <tile_config config, class Protocol>
__device__ void run_loader(const block_view<config>& block, const Protocol& protocol) {
  constexpr auto everybody = static_cast<std::uint16_t>((1U << config.cluster) - 1);
  auto& shared = block.shared;
  const auto own = static_cast<int>(block.in_cluster) * own_columns(config);
  ring_cursor at;
  block.each_work([&](const tile_work& w) {
    protocol.before_tile(block.place(w));
    const int x = block.x_begin(w);
    const int y = block.y_begin(w) + own;
    for (int slice = w.begin; slice < w.end; ++slice) {
      shared.empty[at.stage].wait(at.parity ^ 1);
      auto& here = shared.slices[at.stage];
      stage_barrier& full = shared.full[at.stage];
      full.arrive_and_expect(slice_bytes(config));
      fetch_box(here.x, block.arguments.x, {slice * slice_depth, x}, full);
      std::byte* own_y = here.y + own * slice_depth * 2;
      if constexpr (config.cluster == 1) {
        fetch_box(own_y, block.arguments.y, {slice * slice_depth, y}, full);
      } else {
        fetch_box(own_y, block.arguments.y, {slice * slice_depth, y}, full, everybody);
      }
      at.advance<config.stages>();
    }
  });
}

}  // namespace untax::sm90
