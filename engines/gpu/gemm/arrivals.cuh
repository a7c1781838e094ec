#pragma once

#include "engines/gpu/gemm/block.cuh"

namespace untax::gpu {

/// What the producer knows of how far A has come: from a flag poller, or by looking itself.
/// In k-blocks of one window, for the rows that it reads for the work at hand; by all of its lanes.
template <tile_config config, class Source>
class arrivals {
 public:
  __device__ arrivals(const block_view<config>& block, Source& source)
      : block_(block), source_(source), told_(source.polls()) {}

  /// Work whose rows of A begin at `row`.
  __device__ void begin(const work_tile& w, int row) {
    row_ = row;
    begin_ = w.begin;
  }
  __device__ void end(const work_tile& w) { before_ += w.end - w.begin; }

  /// Up to which k-block, from `k_block` to `end`.
  [[nodiscard]] __device__ int come(int k_block, int end) {
    if (!told_) return source_.come(row_, block_.a_rows(), k_block, end);
    const int there = block_.shared.arrived.count() - before_ + begin_;
    // A flag poller that moves first has not looked yet; what is the rank's own is there all the
    // same.
    if (there <= k_block) return source_.is_there(row_, k_block) ? end : k_block;
    return there < end ? there : end;
  }
  /// The same, some looks later if nothing has.
  [[nodiscard]] __device__ int come_soon(int k_block, int end) {
    if (told_) block_.shared.arrived.await(number_of(k_block + 1), looks);
    return come(k_block, end);
  }
  /// Stages of weights to ask for before each look but the first. A look of its own takes longer.
  [[nodiscard]] __device__ int asked_for_each_look() const { return told_ ? 1 : 2; }
  __device__ void await(int k_block, int end) {
    if (!told_) return source_.await(row_, block_.a_rows(), k_block, end);
    block_.shared.arrived.await(number_of(end));
  }

 private:
  static constexpr poll_count looks = 4;

  /// How many have come when that k-block is the first that has not.
  [[nodiscard]] __device__ int number_of(int k_block) const { return before_ + k_block - begin_; }

  const block_view<config>& block_;
  Source& source_;
  bool told_;
  int before_ = 0;  // k-blocks of the work that is over
  int row_ = 0;     // of the work at hand, like the next one
  int begin_ = 0;
};

/// Where all of A is there.
template <tile_config config, class Source>
requires(!awaited_source<Source>) class arrivals<config, Source> {
 public:
  __device__ arrivals(const block_view<config>& /*block*/, Source& /*source*/) {}
  __device__ void begin(const work_tile& /*w*/, int /*row*/) {}
  __device__ void end(const work_tile& /*w*/) {}
};

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
  /// After so many a wait that is looked after begins; a trace knows those waits only.
  static constexpr int most_pauses = 256;

  /// Up to which k-block A has come: one more at least.
  __device__ int find(int row, int k_block, int end) {
    const int rows = block_.a_rows();
    for (int i = is_recorded(block_) ? most_pauses - 1 : 0; i < most_pauses; ++i) {
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
