#pragma once

#include "engines/sm90/gemm/block.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// One warp, of which one thread copies: brings slices of both operands into the ring, ahead of the
/// math. Each block of a cluster reads its own rows of x, and its share of the rows of y for all.
///
/// Weights are there before anybody's A is: while A has not come, the ring is filled with them.
template <tile_config config, class Traffic>
class slice_loader {
 public:
  __device__ slice_loader(const block_view<config>& block, Traffic& traffic)
      : block_(block), traffic_(traffic), leads_(threadIdx.x % 32 == 0) {}

  __device__ void run() {
    block_.each_work([&](const tile_work& w) { load(w); });
  }

 private:
  static constexpr auto everybody = static_cast<std::uint16_t>((1U << config.cluster) - 1);
  /// Rows of A that this block reads for a tile, for itself or for all of the cluster.
  static constexpr int a_rows = a_box_rows(config);

  __device__ void load(const tile_work& w) {
    const int share = static_cast<int>(block_.in_cluster) * own_columns(config);
    const int x = block_.x_begin(w);
    const int y = block_.y_begin(w) + share;
    const int a_row = config.swapped ? y : x;
    const int b_row = config.swapped ? x : y;
    for (int slice = w.begin; slice < w.end;) {
      const stretch from = traffic_.stretch_of(a_row, slice);
      const int end = from.end < w.end ? from.end : w.end;
      int weights = slice;  // are on their way up to here
      if constexpr (Traffic::waits) {
        if (!traffic_.come(a_row, a_rows, slice, end)) {
          // The slice before these keeps its stage until the math has the next one whole.
          const int most = slice + config.stages - 1 < end ? slice + config.stages - 1 : end;
          for (; weights < most; ++weights) fetch_weights(from, b_row, weights);
          traffic_.await(a_row, a_rows, slice, end);
        }
      }
      for (; slice < end; ++slice) {
        if (slice >= weights) fetch_weights(from, b_row, slice);
        fetch_a(from, slice);
      }
    }
  }

  __device__ void fetch_weights(const stretch& from, int row, int slice) {
    auto& shared = block_.shared;
    const std::uint32_t stage = weights_at_.stage;
    if (leads_) {
      shared.empty[stage].wait(weights_at_.parity ^ 1);
      shared.full[stage].arrive_and_expect(slice_bytes(config));
      fetch<!config.swapped>(*from.b, {(slice - from.first) * slice_depth, row}, stage);
    }
    weights_at_.template advance<config.stages>();
  }
  __device__ void fetch_a(const stretch& from, int slice) {
    if (leads_)
      fetch<config.swapped>(*from.a, {(slice - from.first) * slice_depth, from.a_row}, a_at_.stage);
    a_at_.template advance<config.stages>();
  }

  /// A slice of y, or of x, into a stage.
  template <bool of_y>
  __device__ void fetch(const CUtensorMap& matrix, box_at from, std::uint32_t stage) {
    auto& here = block_.shared.slices[stage];
    stage_barrier& full = block_.shared.full[stage];
    if constexpr (!of_y) {
      fetch_box(here.x, matrix, from, full);
      return;
    }
    std::byte* own =
        here.y + static_cast<int>(block_.in_cluster) * own_columns(config) * slice_depth * 2;
    if constexpr (config.cluster == 1) {
      fetch_box(own, matrix, from, full);
    } else {
      fetch_box(own, matrix, from, full, everybody);
    }
  }

  const block_view<config>& block_;
  Traffic& traffic_;
  bool leads_;
  ring_cursor weights_at_;
  ring_cursor a_at_;
};

}  // namespace untax::sm90
