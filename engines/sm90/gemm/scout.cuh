#pragma once

#include "engines/sm90/gemm/block.cuh"

namespace untax::sm90 {

/// One warp that looks for A ahead of the loader, in the same order. A look takes as long as the
/// math takes for several slices, and the loader has better to do.
template <tile_config config, class Traffic>
class arrival_scout {
 public:
  __device__ arrival_scout(const block_view<config>& block, Traffic& traffic)
      : block_(block), traffic_(traffic), leads_(threadIdx.x % 32 == 0) {}

  __device__ void run() {
    block_.each_work([&](const tile_work& w) {
      if (w.tile != tile_) {
        tile_ = w.tile;
        row_ = block_.a_begin(w);
      }
      const int row = row_;
      for (int slice = w.begin; slice < w.end;) {
        const stretch from = traffic_.stretch_of(row, slice);
        const int end = from.end < w.end ? from.end : w.end;
        slice = find(row, slice, end);
        // The last stage of a stretch is as long as any.
        if (slice == end) slice = w.begin + round_up(slice - w.begin, stage_slices(config));
        const int count = before_ + slice - w.begin;
        // What was acquired, and made known to the copy engine, by all lanes.
        __syncwarp();
        if (leads_) block_.shared.arrived.raise(count);
      }
      before_ += w.end - w.begin;
    });
  }

 private:
  /// Looks without a pause, by all blocks, would hold up those who raise what is looked at.
  static constexpr unsigned pause_nanoseconds = 300;
  /// After so many a wait that is looked after begins.
  static constexpr int most_pauses = 256;

  /// Up to which slice A has come: one more at least.
  __device__ int find(int row, int slice, int end) {
    const int rows = block_.a_rows();
    for (int i = 0; i < most_pauses; ++i) {
      const int there = traffic_.come(row, rows, slice, end);
      if (there > slice) return there;
      __nanosleep(pause_nanoseconds);
    }
    traffic_.await(row, rows, slice, slice + 1);
    return slice + 1;
  }

  const block_view<config>& block_;
  Traffic& traffic_;
  bool leads_;
  int before_ = 0;  // slices of the work that is over
  int tile_ = -1;   // of the work at hand, and where its rows of A begin
  int row_ = 0;
};

}  // namespace untax::sm90
