#pragma once

#include "engines/sm90/gemm/block.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// One thread: brings slices of x and y into the ring, ahead of the math. Each block of a cluster
/// reads its own rows of x, and its share of the rows of y for all. Where a slice takes the math
/// little time, every instruction in here counts.
template <tile_config config, class Protocol>
class loader {
 public:
  __device__ loader(const block_view<config>& block, const Protocol& protocol)
      : block_(block),
        protocol_(protocol),
        own_(static_cast<int>(block.in_cluster) * block.arguments.own_columns),
        bytes_(static_cast<std::uint32_t>(block.arguments.slice_bytes)) {}

  __device__ void run() {
    if (block_.arguments.weights_ready) begin_with_weights();
    await_kernels_before();
    block_.each_work([&](const tile_work& w) {
      protocol_.before_tile(block_.place(w));
      const int x = block_.x_begin(w);
      const int y = block_.y_begin(w) + own_;
      int slice = w.begin;
      for (; begun_ > 0; --begun_, ++slice) {
        if constexpr (config.swapped) {
          fetch_y(at_, y, slice);
        } else {
          fetch_x(at_, x, slice);
        }
        at_.template advance<config.stages>();
      }
      for (; slice < w.end; ++slice) {
        open(at_);
        fetch_x(at_, x, slice);
        fetch_y(at_, y, slice);
        at_.template advance<config.stages>();
      }
    });
  }

 private:
  /// Fills the ring with weights, while the kernels before this one end.
  __device__ void begin_with_weights() {
    const tile_work w = block_.arguments.schedule.first(block_.cluster);
    if (!w.valid()) return;
    const int slices = w.end - w.begin;
    ring_cursor to;
    for (; begun_ < slices && begun_ < config.stages; ++begun_) {
      open(to);
      if constexpr (config.swapped) {
        fetch_x(to, block_.x_begin(w), w.begin + begun_);
      } else {
        fetch_y(to, block_.y_begin(w) + own_, w.begin + begun_);
      }
      to.template advance<config.stages>();
    }
  }

  /// Gets a stage ready for what is fetched into it.
  __device__ void open(const ring_cursor& at) {
    block_.shared.empty[at.stage].wait(at.parity ^ 1);
    block_.shared.full[at.stage].arrive_and_expect(bytes_);
  }

  __device__ void fetch_x(const ring_cursor& at, int x, int slice) {
    auto& here = block_.shared.slices[at.stage];
    stage_barrier& full = block_.shared.full[at.stage];
#pragma unroll
    for (int panel = 0; panel < panels_of(config); ++panel) {
      const box_at from{slice * slice_depth(config) + panel * panel_depth, x};
      if constexpr (config.swapped) {
        // Nobody else reads these weights.
        fetch_box_once(here.x[panel], block_.arguments.x, from, full);
      } else {
        fetch_box(here.x[panel], block_.arguments.x, from, full);
      }
    }
  }

  __device__ void fetch_y(const ring_cursor& at, int y, int slice) {
    constexpr auto everybody = static_cast<std::uint16_t>((1U << config.cluster) - 1);
    auto& here = block_.shared.slices[at.stage];
    stage_barrier& full = block_.shared.full[at.stage];
#pragma unroll
    for (int panel = 0; panel < panels_of(config); ++panel) {
      std::byte* own = here.y[panel] + own_ * panel_depth * 2;
      const box_at from{slice * slice_depth(config) + panel * panel_depth, y};
      if constexpr (config.cluster == 1) {
        fetch_box(own, block_.arguments.y, from, full);
      } else {
        fetch_box(own, block_.arguments.y, from, full, everybody);
      }
    }
  }

  const block_view<config>& block_;
  const Protocol& protocol_;
  ring_cursor at_;
  int own_;              // the first row of y that this block reads for all
  std::uint32_t bytes_;  // that come to a stage
  int begun_ = 0;        // slices whose weights were fetched before the kernels before ended
};

}  // namespace untax::sm90
