#pragma once

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/gemm/stream_k.cuh"
#include "engines/gpu/matrix/pairs.cuh"
#include "engines/gpu/sm90/mma/descriptor.cuh"
#include "engines/gpu/sm90/mma/shapes.cuh"
#include "engines/gpu/sm90/mma/warpgroup.cuh"
#include "engines/gpu/sm90/ptx/matrix_store.cuh"

namespace untax::gpu {

/// An MMA warpgroup: multiplies 64 rows of the block's tile, or every other k-block of it. Its sums
/// stay in registers from the first k-block to the last; with `has_ranges`, those of each range of
/// k by themselves. `Rows` may load A; `Results` may take the sums, or add to them.
template <class T, tile_config config, bool has_ranges, class Rows = no_rows,
          class Results = results_to_epilogue>
class mma_consumer {
 public:
  __device__ mma_consumer(const block_view<config>& block, int group, const Rows& rows = {},
                          const Results& results = {})
      : block_(block),
        rows_(rows),
        results_(results),
        group_(group),
        warp_(static_cast<int>(threadIdx.x) % warpgroup_threads / 32),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  /// Multiplies all tiles. Returns the `Results`, which have received all sums.
  __device__ const Results& run() {
    const stream_k_fixup<config> others(block_, group_);
    const tile_scheduler& schedule = block_.arguments.schedule;
    if constexpr (Results::takes) results_.begin();
    block_.each_tile([&](const work_tile& w) {
      if constexpr (Results::adds) results_.next_work();
      const tile_note noted(block_, block_.shared.full[reading_.stage], reading_.parity);
      multiply_ranges(w);
      if constexpr (config.cluster_split_k > 1) {
        share_out(w);
      } else {
        if (hands_over()) return;
        if (schedule.stores_partial(w)) {
          others.leave(sums_);
          return;
        }
        if (w.begin > 0) others.add(sums_, schedule.first_contributor(block_.cluster, w));
        if constexpr (Results::takes) {
          results_.template take<T, config>(block_, block_.place(w), sums_);
        } else {
          if constexpr (Results::adds) results_.begin(block_, w, group_);
          pass_on(w, 0);
        }
      }
    });
    if constexpr (Results::adds) results_.template finish<T>(block_, group_);
    return results_;
  }

 private:
  static_assert(!Results::takes || config.cluster_split_k == 1, "sums of whole tiles are taken");

  /// Multiplies one range after the other, if a block has several.
  __device__ void multiply_ranges(const work_tile& w) {
    float before[has_ranges ? config.block_n / 2 : 1];  // sums of the previous ranges
    work_tile range = w;
#pragma unroll 1
    for (;;) {
      if constexpr (has_ranges) range.end = block_.arguments.schedule.sums_end(range.begin, w.end);
      clear_sums();
      multiply(range);
      if constexpr (has_ranges) {
        if (range.begin > w.begin && !hands_over()) add_to_sums(before);
      }
      if constexpr (config.warpgroup_split_k && config.cluster_split_k == 1) add_halves();
      if (!has_ranges || range.end == w.end) return;
      if constexpr (has_ranges) {
#pragma unroll
        for (int i = 0; i < config.block_n / 2; ++i) before[i] = sums_[i];
      }
      range.begin = range.end;
    }
  }
  /// Whether the block's other warpgroup adds this warpgroup's sums to its own.
  [[nodiscard]] __device__ bool hands_over() const {
    return config.warpgroup_split_k && config.cluster_split_k == 1 && group_ == 1;
  }
  template <int count>
  __device__ void add_to_sums(const float (&before)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums_[i] = before[i] + sums_[i];
  }

  __device__ void multiply(const work_tile& w) {
    if constexpr (Rows::stages == 0) {
      multiply_k_blocks(w.begin, w.end);
    } else {
      rows_window window = window_at(w.begin, w.end);
      auto first = rows_.request(window.k_block + group_, window.stages);
      settle(first, window.stages);
#pragma unroll 1
      for (;;) {
        const rows_window next = window_at(window.end(), w.end);
        // These rows arrive while the current window is multiplied.
        auto requested = rows_.request(next.k_block + group_, next.stages);
        multiply_k_blocks(window.k_block, window.end());
        if (next.stages == 0) return;
        settle(requested, next.stages);
        window = next;
      }
    }
  }

  /// Stages whose rows of A are loaded together, from a k-block on.
  struct rows_window {
    int k_block;
    int stages;

    [[nodiscard]] __device__ int end() const {
      return k_block + stages * k_blocks_per_stage(config);
    }
  };
  [[nodiscard]] __device__ static rows_window window_at(int k_block, int end) {
    return {k_block, min((end - k_block) / k_blocks_per_stage(config), Rows::stages)};
  }
  /// Writes the requested rows to the next stages.
  template <class Requested>
  __device__ void settle(Requested& requested, int stages) {
    // Other warps may still multiply the previous window, so the next one uses other stages.
    static_assert(config.warpgroup_split_k && 2 * Rows::stages <= config.stages);
    rows_.settle(requested, stages, [&](int i) {
      const std::uint32_t next = reading_.stage + static_cast<std::uint32_t>(i);
      return block_.shared.stages[next < config.stages ? next : next - config.stages]
          .n_operand[group_];
    });
    // The tensor cores read what all threads wrote with ordinary stores.
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncwarp();
    meet_warpgroup(2 + group_);
  }

  __device__ void multiply_k_blocks(int begin, int end) {
    auto& shared = block_.shared;
    std::uint32_t before = 0;  // the previous stage
    int k_block = begin;
#pragma unroll 1
    do {
      shared.full[reading_.stage].wait(reading_.parity);
      const auto& here = shared.stages[reading_.stage];
      // Each warpgroup multiplies one k-block, or half of the rows of the M operand.
      const std::uint64_t m_operand = operand_descriptor(
          config.warpgroup_split_k ? here.m_operand[group_]
                                   : here.m_operand[0] + group_ * (warpgroup_rows * block_k * 2));
      const std::uint64_t n_operand =
          operand_descriptor(here.n_operand[config.warpgroup_split_k ? group_ : 0]);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < block_k; k += 16)
        gpu::multiply<T, config.block_n>(sums_, advanced(m_operand, k), advanced(n_operand, k),
                                         true);
      wgmma_commit();
      wgmma_wait<1>();
      if (k_block > begin) release(before);
      before = reading_.stage;
      reading_.advance<config.stages>();
      k_block += k_blocks_per_stage(config);
    } while (k_block < end);
    wgmma_wait<0>();
    hold_sums(sums_);
    release(before);
  }

  /// Sets the sums to zero. If the first multiplication overwrote them instead, the old sums would
  /// stay live until then, and the compiler would serialise the multiplications.
  __device__ void clear_sums() {
#pragma unroll
    for (float& sum : sums_) sum = 0;
  }

  /// Adds the sums of warpgroup 1 to those of warpgroup 0.
  __device__ void add_halves() {
    float4* const halves = block_.shared.halves + static_cast<int>(threadIdx.x) % warpgroup_threads;
    if (group_ == 1) {
#pragma unroll
      for (int i = 0; i < config.block_n / 8; ++i)
        halves[i * warpgroup_threads] =
            make_float4(sums_[4 * i], sums_[4 * i + 1], sums_[4 * i + 2], sums_[4 * i + 3]);
    }
    named_barrier_sync(1);
    if (group_ == 0) {
#pragma unroll
      for (int i = 0; i < config.block_n / 8; ++i)
        add_four(sums_ + 4 * i, halves[i * warpgroup_threads]);
    }
    // Warpgroup 1 may write the sums of the next tile after this.
    named_barrier_sync(1);
  }

  /// Signals, for this warp, that the stage may be overwritten, to all blocks that share the N
  /// operand.
  __device__ void release(std::uint32_t stage) {
    if (lane_ < config.cluster)
      block_.shared.empty[stage].arrive_at(block_.split * config.cluster +
                                           static_cast<std::uint32_t>(lane_));
  }

  /// Sends the sums of each share to the block that stores it. For the share of this block, adds
  /// the sums of all warpgroups, and hands the result to the epilogue.
  __device__ void share_out(const work_tile& w) {
    constexpr int count = share_columns(config) / 2;
    constexpr int each = k_blocks_per_stage(config);
    const int thread = static_cast<int>(threadIdx.x) % warpgroup_threads;
    const int mine = static_cast<int>(block_.split);
    // The rows of the tile, and the part of k. The two groups differ in one or the other.
    const int rows = each == 1 ? group_ : 0;
    const int part = each * mine + (each == 1 ? 0 : group_);
    auto& inbox = block_.shared.splits;
#pragma unroll
    for (int share = 0; share < shares_of(config); ++share) {
      if (each * share == part) continue;
      const auto split = static_cast<std::uint32_t>(share);
      inbox.send(sums_ + share * count, block_.block_of_split(split), each * share, part, rows,
                 thread);
    }
#pragma unroll
    for (int share = 0; share < shares_of(config); ++share) {
      if (each * share != part) continue;
      inbox.add(sums_ + share * count, each * share, rows, thread);
      pass_on(w, share);
    }
  }

  /// Hands the sums of a share to the epilogue warp or, for gates, stores function(gate) * up.
  __device__ __forceinline__ void pass_on(const work_tile& w, int share) {
    if constexpr (Results::gates) {
      if (results_.multiply()) {
        const tile_scheduler::coord at = block_.arguments.schedule.at(w.tile);
        const int rows = config.warpgroup_split_k ? 0 : group_ * warpgroup_rows;
        return results_.template store<T, share_columns(config)>(
            block_.m_begin(at) + rows + warp_ * 16,
            block_.n_begin(at) + share * share_columns(config),
            sums_ + share * (share_columns(config) / 2));
      }
    }
    stage_results(share);
  }

  /// Hands the sums of a share to the epilogue warp, one sub-tile at a time.
  __device__ __forceinline__ void stage_results(int share) {
    auto& shared = block_.shared;
#pragma unroll
    for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
      shared.epi_empty[group_][writing_.stage].wait(writing_.parity);
      std::byte* rows = shared.epilogue_buffers[group_][writing_.stage].rows;
      const int at = (share * subtiles_of(config) + subtile) * subtile_columns(config);
#pragma unroll
      for (int j = 0; j + 8 < subtile_columns(config); j += 16) write_sixteen(rows, at, j);
      if constexpr (subtile_columns(config) % 16 != 0)
        write_eight(rows, at, subtile_columns(config) - 8);
      if constexpr (Results::adds) results_.template add<T, config>(subtile, rows);
      // TMA reads what ordinary stores wrote.
      if (!left_out(mutant::results_proxy)) cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
      shared.epi_full[group_][writing_.stage].arrive();
      writing_.advance<config.epilogue_buffers>();
    }
  }

  /// Writes columns j to j + 15 of a sub-tile, which begins at column `begin` of the tile: this
  /// warp's 16 rows by 16 columns, as four matrices of 8 x 8.
  __device__ void write_sixteen(std::byte* rows, int begin, int j) {
    const int matrix = lane_ / 8;
    // Matrix 1 lies below matrix 0; matrices 2 and 3 lie to the right of them.
    const int m = warp_ * 16 + matrix % 2 * 8;
    const int n = j + matrix / 2 * 8;
    const int row = (config.swap_ab ? n : m) + lane_ % 8;
    const int column = config.swap_ab ? m : n;
    const int swizzled = (column / 8) ^ (row % 8);
    const float* s = sums_ + (begin + j) / 2;
    store_matrices<config.swap_ab>(rows + row * (subtile_side * 2) + swizzled * 16,
                                   two_halves(s[0], s[1], T{}), two_halves(s[2], s[3], T{}),
                                   two_halves(s[4], s[5], T{}), two_halves(s[6], s[7], T{}));
  }
  /// Writes the last columns of a sub-tile whose width is an odd multiple of 8: two matrices, one
  /// below the other.
  __device__ void write_eight(std::byte* rows, int begin, int j) {
    const int row = config.swap_ab ? j + lane_ % 8 : warp_ * 16 + lane_ % 16;
    const int swizzled = (config.swap_ab ? warp_ * 2 + lane_ % 16 / 8 : j / 8) ^ (row % 8);
    const float* s = sums_ + (begin + j) / 2;
    store_matrices<config.swap_ab>(rows + row * (subtile_side * 2) + swizzled * 16,
                                   two_halves(s[0], s[1], T{}), two_halves(s[2], s[3], T{}));
  }

  const block_view<config>& block_;
  Rows rows_;
  Results results_;
  int group_;
  int warp_;
  int lane_;
  ring_cursor reading_;
  ring_cursor writing_;
  float sums_[config.block_n / 2];
};

}  // namespace untax::gpu
