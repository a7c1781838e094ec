#pragma once

#include "engines/gpu/gemm/block.cuh"

namespace untax::gpu {

/// How far A has arrived, for the producer: a flag poller counts, or the producer polls itself. In
/// k-blocks of one window, for the rows that it loads for the current work; by all of its lanes.
template <tile_config config, class Source>
class arrivals {
 public:
  __device__ arrivals(const block_view<config>& block, Source& source)
      : block_(block), source_(source), has_poller_(source.polls()) {}

  /// Work whose rows of A begin at `row`.
  __device__ void begin(const work_tile& w, int row) {
    row_ = row;
    begin_ = w.begin;
  }
  __device__ void end(const work_tile& w) { before_ += w.end - w.begin; }

  /// Up to which k-block A has arrived, from `k_block` to `end`.
  [[nodiscard]] __device__ int arrived_until(int k_block, int end) {
    if (!has_poller_) return source_.arrived_until(row_, block_.a_rows(), k_block, end);
    const int arrived = block_.shared.arrived.count() - before_ + begin_;
    // A flag poller that moves chunks first has not polled yet; but own A needs no arrival.
    if (arrived <= k_block) return source_.is_own_window(row_, k_block) ? end : k_block;
    return arrived < end ? arrived : end;
  }
  /// The same, after some polls if nothing has.
  [[nodiscard]] __device__ int arrived_soon(int k_block, int end) {
    if (has_poller_) block_.shared.arrived.await(number_of(k_block + 1), polls);
    return arrived_until(k_block, end);
  }
  /// Stages of weights to load before each poll but the first. A poll of flags by the producer
  /// itself takes longer than a look at the poller's count.
  [[nodiscard]] __device__ int stages_per_poll() const { return has_poller_ ? 1 : 2; }
  __device__ void await(int k_block, int end) {
    if (!has_poller_) return source_.await(row_, block_.a_rows(), k_block, end);
    block_.shared.arrived.await(number_of(end));
  }

 private:
  static constexpr poll_count polls = 4;

  /// How many have arrived when that k-block is the first that has not.
  [[nodiscard]] __device__ int number_of(int k_block) const { return before_ + k_block - begin_; }

  const block_view<config>& block_;
  Source& source_;
  bool has_poller_;
  int before_ = 0;  // k-blocks of all work before the current one
  int row_ = 0;     // of the current work, like the next one
  int begin_ = 0;
};

/// Of a source whose A is ready from the start.
template <tile_config config, class Source>
requires(!awaited_source<Source>) class arrivals<config, Source> {
 public:
  __device__ arrivals(const block_view<config>& /*block*/, Source& /*source*/) {}
  __device__ void begin(const work_tile& /*w*/, int /*row*/) {}
  __device__ void end(const work_tile& /*w*/) {}
};

/// A warp that polls the flags of A ahead of the producer, in the same order. A poll takes as long
/// as the consumer takes for several k-blocks, and would hold the producer up.
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
        // All lanes have acquired, and have fenced for TMA.
        __syncwarp();
        if (leads_) block_.shared.arrived.raise(count);
      }
      before_ += w.end - w.begin;
    });
  }

 private:
  /// Polls of all blocks without a pause would slow down the writes that they poll for.
  static constexpr unsigned pause_nanoseconds = 300;
  /// After so many a bounded wait begins; a trace records those waits only.
  static constexpr int most_pauses = 256;

  /// Up to which k-block A has arrived: one more at least.
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
  int tile_ = -1;   // of the current work, and where its rows of A begin
  int row_ = 0;
};

}  // namespace untax::gpu
