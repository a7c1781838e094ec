#pragma once

#include "engines/gpu/gemm/block.cuh"

namespace untax::gpu {

/// One warp that looks for A ahead of the producer, in the same order. A look takes as long as the
/// consumer takes for several k-blocks, and the producer has better to do.
template <tile_config config, class Source>
class flag_poller {
 public:
  __device__ flag_poller(const block_view<config>& block, Source& source)
      : block_(block), source_(source), leads_(threadIdx.x % 32 == 0) {}

  __device__ void run() {
    block_.each_work([&](const work_tile& w) {
      if (w.tile != tile_) {
        tile_ = w.tile;
        row_ = block_.a_begin(w);
      }
      const int row = row_;
      for (int k_block = w.begin; k_block < w.end;) {
        const operand_window from = source_.window_of(row, k_block);
        const int end = from.end < w.end ? from.end : w.end;
        k_block = find(row, k_block, end);
        // The last stage of a window is as long as any.
        if (k_block == end)
          k_block = w.begin + round_up(k_block - w.begin, k_blocks_per_stage(config));
        const int count = before_ + k_block - w.begin;
        // What was acquired, and made known to TMA, by all lanes.
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

  /// Up to which k-block A has come: one more at least.
  __device__ int find(int row, int k_block, int end) {
    const int rows = block_.a_rows();
    for (int i = 0; i < most_pauses; ++i) {
      const int there = source_.come(row, rows, k_block, end);
      if (there > k_block) return there;
      __nanosleep(pause_nanoseconds);
    }
    source_.await(row, rows, k_block, k_block + 1);
    return k_block + 1;
  }

  const block_view<config>& block_;
  Source& source_;
  bool leads_;
  int before_ = 0;  // k-blocks of the work that is over
  int tile_ = -1;   // of the work at hand, and where its rows of A begin
  int row_ = 0;
};

}  // namespace untax::gpu
