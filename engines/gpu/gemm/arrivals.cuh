#pragma once

#include "engines/gpu/gemm/block.cuh"

namespace untax::gpu {

/// Tells the producer how far A has arrived: from the flag poller's count, or by polling the flags.
/// K-blocks are of one window, for the rows of the current work. All lanes of the warp call it.
template <tile_config config, class Source>
class arrivals {
 public:
  __device__ arrivals(const block_view<config>& block, Source& source)
      : block_(block), source_(source), has_poller_(source.polls()) {}

  /// Begins work whose rows of A begin at `row`.
  __device__ void begin(const work_tile& w, int row) {
    row_ = row;
    begin_ = w.begin;
  }
  __device__ void end(const work_tile& w) { before_ += w.end - w.begin; }

  /// The first k-block of [k_block, end) whose A has not arrived, or `end`.
  [[nodiscard]] __device__ int arrived_until(int k_block, int end) {
    if (!has_poller_) return source_.arrived_until(row_, block_.a_rows(), k_block, end);
    const int arrived = block_.shared.arrived.count() - before_ + begin_;
    // A flag poller that also sends chunks may not have polled yet; the rank's own A is always
    // there.
    if (arrived <= k_block) return source_.is_own_window(row_, k_block) ? end : k_block;
    return arrived < end ? arrived : end;
  }
  /// As `arrived_until`, but with a flag poller it first polls the count a few times.
  [[nodiscard]] __device__ int arrived_soon(int k_block, int end) {
    if (has_poller_) block_.shared.arrived.await(number_of(k_block + 1), polls);
    return arrived_until(k_block, end);
  }
  /// Stages of weights to load before each poll except the first. A poll of the flags by the
  /// producer itself takes longer than reading the flag poller's count.
  [[nodiscard]] __device__ int stages_per_poll() const { return has_poller_ ? 1 : 2; }
  __device__ void await(int k_block, int end) {
    if (!has_poller_) return source_.await(row_, block_.a_rows(), k_block, end);
    block_.shared.arrived.await(number_of(end));
  }

 private:
  static constexpr poll_count polls = 4;

  /// The number of arrived k-blocks if `k_block` is the first that has not arrived.
  [[nodiscard]] __device__ int number_of(int k_block) const { return before_ + k_block - begin_; }

  const block_view<config>& block_;
  Source& source_;
  bool has_poller_;
  int before_ = 0;  // k-blocks of all work before the current one
  int row_ = 0;     // of the current work, like `begin_`
  int begin_ = 0;
};

/// For a source whose A is ready from the start.
template <tile_config config, class Source>
requires(!awaited_source<Source>) class arrivals<config, Source> {
 public:
  __device__ arrivals(const block_view<config>& /*block*/, Source& /*source*/) {}
  __device__ void begin(const work_tile& /*w*/, int /*row*/) {}
  __device__ void end(const work_tile& /*w*/) {}
};

/// The warp that polls the flags of A ahead of the producer, in the same order. A poll takes as
/// long as the consumers take for several k-blocks, and would delay the producer.
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
        // If the last stage of a window has fewer k-blocks than others, it counts as a whole stage.
        if (k_block == end)
          k_block = w.begin + round_up(k_block - w.begin, k_blocks_per_stage(config));
        const int count = before_ + k_block - w.begin;
        // All lanes have acquired A and executed the proxy fence for TMA.
        __syncwarp();
        if (leads_) block_.shared.arrived.raise(count);
      }
      before_ += w.end - w.begin;
    });
  }

 private:
  /// Without a pause, polls of all blocks would slow down the writes for which they poll.
  static constexpr unsigned pause_nanoseconds = 300;
  /// After this many polls a bounded wait begins. A trace records only that wait.
  static constexpr int most_pauses = 256;

  /// The k-block up to which A has arrived, at least one more than `k_block`.
  __device__ int find(int row, int k_block, int end) {
    const int rows = block_.a_rows();
    for (int i = is_recorded(block_) ? most_pauses - 1 : 0; i < most_pauses; ++i) {
      const int arrived = source_.arrived_until(row, rows, k_block, end);
      if (arrived > k_block) return arrived;
      __nanosleep(pause_nanoseconds);
    }
    source_.await(row, rows, k_block, k_block + 1);
    return k_block + 1;
  }

  const block_view<config>& block_;
  Source& source_;
  bool leads_;
  int before_ = 0;  // k-blocks of all work before the current one
  int tile_ = -1;   // tile of the current work; `row_` is its first row of A
  int row_ = 0;
};

}  // namespace untax::gpu
