#pragma once

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/arrivals.cuh"
#include "engines/gpu/gemm/operand_load.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// Stages of weights that are loaded before the first poll for A; later, one or two before each
/// poll. More would delay A, which passes through the same memory.
inline constexpr int stages_before_poll = 5;
/// Stages of weights that are prefetched into L2 when the ring is full: 35 MB by all blocks, if a
/// stage has 16 KB of weights. That takes the memory 8 us; by then A has arrived.
inline constexpr int most_prefetched = 16;

/// The producer warp, of which one thread copies: it loads k-blocks of both operands into the ring,
/// ahead of the consumers. Each block loads its own rows of the M operand, and its share of the
/// rows of the N operand for all blocks that share them. If the tensor cores need little time for a
/// stage, every instruction of the producer counts.
///
/// Weights are ready before A. Until A arrives, the ring is filled with them, and, if they are the
/// M operand, whose loads take most time, also some of L2. If nobody writes the weights, those of
/// the first stages are loaded before the previous kernels end.
template <tile_config config, class Source>
class tma_producer {
 public:
  /// `fetched`: the result of `load_early_weights` of another object.
  __device__ tma_producer(const block_view<config>& block, Source& source, int fetched = 0)
      : block_(block), source_(source), arrivals_(block, source), ahead_(fetched) {}

  /// Issues the loads of the weights of the first stages, of `most` at most, and accesses nothing
  /// else. Returns the number of stages.
  [[nodiscard]] __device__ int load_early_weights(int most) {
    ring_cursor to = at_;
    for (work_tile w = block_.first(); w.valid() && ahead_ < most; w = block_.next(w)) {
      const int a_row = block_.a_begin(w);
      const int b_row = block_.b_begin(w);
      each_range(w, [&](const work_tile& range) {
        for (int k_block = range.begin; k_block < range.end && ahead_ < most;) {
          const operand_window from = source_.window_of(a_row, k_block);
          enter(from, a_row, k_block);
          const int end = from.end < range.end ? from.end : range.end;
          for (; k_block < end && ahead_ < most; k_block += per_stage, ++ahead_) {
            if (elect_one()) {
              open(to);
              fetch_weights(to, from, b_row, k_block);
            }
            to.template advance<config.stages>();
          }
        }
      });
    }
    __syncwarp();
    return ahead_;
  }

  __device__ void run() {
    if (!together && !elect_one()) return;
    block_.each_work(
        [&](const work_tile& w) { each_range(w, [&](const work_tile& range) { load(range); }); });
    if constexpr (retires) {
      if (!source_.counts_readers()) return;
      if (leads()) await_consumers();
      __syncwarp();
      source_.retire();
    }
  }

 private:
  static constexpr bool waits = awaited_source<Source>;
  static constexpr bool retires = retired_source<Source>;
  static constexpr bool brings = bringing_source<Source>;
  /// Whether all lanes take part, although only one copies.
  static constexpr bool together = waits || retires;
  static constexpr int per_stage = k_blocks_per_stage(config);
  static_assert(!brings || config.swap_ab, "rows of A are the N operand");
  /// Plans ensure that A arrives in the order of k if it is awaited, or bypasses the producer.
  static constexpr bool pairs_ranges = per_stage > 1 && !waits && !brings;
  /// Bytes of a stage if TMA loads only weights.
  static constexpr std::uint32_t weight_bytes = per_stage * tile_rows(config) * block_k * 2;
  /// Stages whose A has arrived but that are not loaded yet when the producer polls again: a poll
  /// takes as long as the consumers take for several stages.
  static constexpr int in_hand = 4;

  [[nodiscard]] __device__ static bool leads() { return !together || elect_one(); }

  /// Calls `visit(range)` for each part of the work whose stages have a k-block of each of two
  /// ranges, and once for other work.
  template <class Visit>
  __device__ void each_range(const work_tile& w, const Visit& visit) {
    if constexpr (!pairs_ranges) {
      visit(w);
    } else {
      for (work_tile range = w; range.begin < w.end; range.begin = range.end) {
        range.end = block_.arguments.schedule.sums_end(range.begin, w.end);
        stages_ = block_.arguments.schedule.stages_from(range.begin);
        visit(range);
      }
    }
  }
  /// The first column of k-block number `place` of a stage.
  [[nodiscard]] __device__ int column_of(int k_block, int place) const {
    return (pairs_ranges ? stages_.at(k_block, place) : k_block + place) * block_k;
  }

  __device__ void load(const work_tile& w) {
    if (w.tile != tile_) {
      tile_ = w.tile;
      a_row_ = block_.a_begin(w);
      b_row_ = block_.b_begin(w);
    }
    const int a_row = a_row_;
    const int b_row = b_row_;
    arrivals_.begin(w, a_row);
    if constexpr (config.swap_ab) prefetched_ = w.begin;
    for (int k_block = w.begin; k_block < w.end;) {
      const operand_window from = source_.window_of(a_row, k_block);
      enter(from, a_row, k_block);
      const int end = from.end < w.end ? from.end : w.end;
      int arrived = end;
      if constexpr (waits) arrived = arrived_until(from, b_row, k_block, end);
      while (k_block < arrived) {
        int stages = (arrived - k_block + per_stage - 1) / per_stage;
        if constexpr (waits) {
          if (arrived < end) stages = stages > in_hand ? stages - in_hand : 1;
        }
        const int known = ahead_ < stages ? ahead_ : stages;
        if (leads()) fetch_both(from, b_row, k_block, stages, known);
        ahead_ -= known;
        k_block += stages * per_stage;
        if constexpr (waits) {
          if (k_block < arrived && arrived < end)
            arrived = whole_stages(arrivals_.arrived_until(arrived, end), arrived, end);
        }
      }
    }
    arrivals_.end(w);
  }

  /// Sets the rows of A that the stages of a window load. In the last tile of the rank's own shard
  /// these are only the rows that exist, as in `local_producer`; in an inbox other rows lie behind
  /// the last ones.
  __device__ void enter(const operand_window& from, int a_row, int k_block) {
    if constexpr (brings) return;
    a_ = {from.a, from.a_row, block_.a_rows()};
    bytes_ = static_cast<std::uint32_t>(block_.arguments.stage_bytes);
    if constexpr (waits) {
      const operand_tail& tail = config.swap_ab ? block_.arguments.n_tail : block_.arguments.m_tail;
      if (from.a_row < tail.begin || !source_.is_own_window(a_row, k_block)) return;
      int rows = 0;
      if constexpr (config.swap_ab) {
        // The blocks of a cluster have smaller shares there, which lie closer together.
        a_ = {&tail.map, tail.begin + static_cast<int>(block_.m_place) * tail.rows, tail.rows};
        rows = tile_rows(config) + tail.rows * config.cluster;
      } else {
        // Blocks of a cluster that lie beyond the last rows load none.
        a_ = {&tail.map, from.a_row, from.a_row == tail.begin ? tail.rows : 0};
        rows = a_.rows + block_.arguments.multicast_rows * config.cluster;
      }
      bytes_ = static_cast<std::uint32_t>(rows) * (per_stage * block_k * 2);
    }
  }

  /// The k-block up to which A has arrived, at least a stage. Loads weights until then.
  __device__ int arrived_until(const operand_window& from, int b_row, int k_block, int end) {
    int arrived = whole_stages(arrivals_.arrived_until(k_block, end), k_block, end);
    int until_poll = stages_before_poll;
    while (arrived == k_block && load_more_weights(from, b_row, k_block, end)) {
      if (--until_poll > 0) continue;
      arrived = whole_stages(arrivals_.arrived_soon(k_block, end), k_block, end);
      until_poll = arrivals_.stages_per_poll();
    }
    if (arrived > k_block) return arrived;
    arrived = k_block + per_stage < end ? k_block + per_stage : end;
    arrivals_.await(k_block, arrived);
    return arrived;
  }
  /// Loads the weights of the first stage from `k_block` on that has none yet: into the ring, or,
  /// if that is full, into L2. The consumers keep one stage of the ring until the next one is
  /// complete. Returns false if enough weights are loaded.
  __device__ bool load_more_weights(const operand_window& from, int b_row, int k_block, int end) {
    int next = k_block + ahead_ * per_stage;
    if (next >= end) return false;
    if (ahead_ < config.stages - 1) {
      if (leads()) fetch_ahead(from, b_row, next);
      __syncwarp();
      ++ahead_;
      return true;
    }
    if constexpr (config.swap_ab) {
      const int farthest = next + most_prefetched * per_stage;
      next = prefetched_ > next ? prefetched_ : next;
      if (next >= (farthest < end ? farthest : end)) return false;
      if (leads()) prefetch_weights(from, b_row, next);
      prefetched_ = next + per_stage;
      return true;
    } else {
      return false;
    }
  }
  [[nodiscard]] __device__ static int whole_stages(int arrived, int k_block, int end) {
    return arrived == end ? end : k_block + (arrived - k_block) / per_stage * per_stage;
  }

  __device__ void fetch_ahead(const operand_window& from, int b_row, int k_block) {
    ring_cursor to = at_;
    for (int i = 0; i < ahead_; ++i) to.template advance<config.stages>();
    open(to);
    fetch_weights(to, from, b_row, k_block);
  }

  /// Loads `stages` stages, of which the first `known` already have their weights.
  __device__ void fetch_both(const operand_window& from, int b_row, int k_block, int stages,
                             int known) {
    for (int i = 0; i < known; ++i, k_block += per_stage) {
      fetch_a(at_, from, k_block);
      at_.template advance<config.stages>();
    }
    for (int i = known; i < stages; ++i, k_block += per_stage) {
      open(at_);
      fetch_weights(at_, from, b_row, k_block);
      fetch_a(at_, from, k_block);
      at_.template advance<config.stages>();
    }
  }

  /// Waits until the consumers have read everything that was loaded.
  __device__ void await_consumers() {
    for (int i = 0; i < config.stages; ++i) {
      block_.shared.empty[at_.stage].wait(at_.parity ^ 1);
      at_.template advance<config.stages>();
    }
  }
  /// Waits until a stage is free, and sets the number of bytes that its barrier expects.
  __device__ void open(const ring_cursor& at) {
    block_.shared.empty[at.stage].wait(at.parity ^ 1);
    block_.shared.full[at.stage].arrive_and_expect(brings ? weight_bytes : bytes_);
  }
  __device__ void fetch_weights(const ring_cursor& to, const operand_window& from, int row,
                                int k_block) {
    fetch<!config.swap_ab>(to, *from.b, k_block - from.first, row, block_.arguments.multicast_rows);
  }
  /// Prefetches the weights of a stage into L2.
  __device__ void prefetch_weights(const operand_window& from, int row, int k_block) {
#pragma unroll
    for (int i = 0; i < per_stage; ++i)
      tma_prefetch_once(*from.b, {(k_block + i - from.first) * block_k, row});
  }
  __device__ void fetch_a(const ring_cursor& to, const operand_window& from, int k_block) {
    if constexpr (!brings) {
      if (a_.rows > 0) fetch<config.swap_ab>(to, *a_.map, k_block - from.first, a_.row, a_.rows);
    }
  }

  /// Loads the k-blocks of a stage, of the N operand or of the M operand.
  template <bool of_n>
  __device__ void fetch(const ring_cursor& to, const CUtensorMap& matrix, int k_block, int row,
                        int rows) {
    auto& here = block_.shared.stages[to.stage];
    stage_barrier& full = block_.shared.full[to.stage];
#pragma unroll
    for (int i = 0; i < per_stage; ++i) {
      const tma_coord from{column_of(k_block, i), row};
      if constexpr (of_n) {
        load_n_operand(block_, here.n_operand[i], matrix, from, rows, full);
      } else {
        load_m_operand(block_, here.m_operand[i], matrix, from, full);
      }
    }
  }

  /// The rows of A that this block loads of a window.
  struct part {
    const CUtensorMap* map;
    int row;
    int rows;
  };

  const block_view<config>& block_;
  Source& source_;
  arrivals<config, Source> arrivals_;
  part a_{};
  std::uint32_t bytes_ = 0;  // per stage
  ring_cursor at_;
  int ahead_;           // stages from here on that already have their weights
  int prefetched_ = 0;  // weights (M operand) before this k-block are in L2 or prefetched
  stage_order stages_;  // of the current k-blocks
  int tile_ = -1;       // of the current work; it and its rows are found once, by divisions
  int a_row_ = 0;
  int b_row_ = 0;
};

}  // namespace untax::gpu
