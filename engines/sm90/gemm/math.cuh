#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engines/sm90/gemm/block.cuh"
#include "engines/sm90/gemm/helpers.cuh"
#include "engines/sm90/gemm/sums.cuh"
#include "engines/sm90/mma/descriptor.cuh"
#include "engines/sm90/mma/shapes.cuh"
#include "engines/sm90/mma/warpgroup.cuh"
#include "engines/sm90/ptx/matrix_store.cuh"
#include "engines/sm90/transfer/mutant.hpp"

namespace untax::sm90 {

[[nodiscard]] __device__ inline std::uint32_t packed(float a, float b, __nv_bfloat16 /*type*/) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return reinterpret_cast<const std::uint32_t&>(both);
}
[[nodiscard]] __device__ inline std::uint32_t packed(float a, float b, __half /*type*/) {
  const __half2 both = __floats2half2_rn(a, b);
  return reinterpret_cast<const std::uint32_t&>(both);
}

/// A math warpgroup: 64 rows of the block's tile, or every other slice of it. Its sums stay in
/// registers from the first slice to the last. `Rows` may bring A.
template <class T, tile_config config, class Rows = no_rows>
class math_group {
 public:
  __device__ math_group(const block_view<config>& block, int group, const Rows& rows = {})
      : block_(block),
        rows_(rows),
        group_(group),
        warp_(static_cast<int>(threadIdx.x) % group_threads / 32),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ void run() {
    const shared_sums<config> others(block_, group_);
    const tile_schedule& schedule = block_.arguments.schedule;
    block_.each_tile([&](const tile_work& w) {
      clear_sums();
      multiply(w);
      if constexpr (config.deep) {
        add_halves();
        if (group_ == 1) return;
      }
      if constexpr (config.pieces > 1) {
        share_out();
      } else {
        if (schedule.leaves_sums(w)) {
          others.leave(sums_);
          return;
        }
        if (w.begin > 0) others.add(sums_, schedule.first_helper(block_.cluster, w));
        stage_results(0);
      }
    });
  }

 private:
  __device__ void multiply(const tile_work& w) {
    if constexpr (Rows::stages == 0) {
      multiply_slices(w.begin, w.end);
    } else {
      rows_window window = window_at(w.begin, w.end);
      auto first = rows_.ask(window.slice + group_, window.stages);
      settle(first, window.stages);
#pragma unroll 1
      for (;;) {
        const rows_window next = window_at(window.end(), w.end);
        // They come while these are multiplied.
        auto asked = rows_.ask(next.slice + group_, next.stages);
        multiply_slices(window.slice, window.end());
        if (next.stages == 0) return;
        settle(asked, next.stages);
        window = next;
      }
    }
  }

  /// Stages whose rows of A are brought together, from a slice on.
  struct rows_window {
    int slice;
    int stages;

    [[nodiscard]] __device__ int end() const { return slice + stages * stage_slices(config); }
  };
  [[nodiscard]] __device__ static rows_window window_at(int slice, int end) {
    return {slice, min((end - slice) / stage_slices(config), Rows::stages)};
  }
  /// Writes what was asked for to the next stages.
  template <class Asked>
  __device__ void settle(Asked& asked, int stages) {
    // Other warps may not have ended the multiplications before the last ones.
    static_assert(config.deep && 2 * Rows::stages <= config.stages);
    rows_.settle(asked, stages, [&](int i) {
      const std::uint32_t next = reading_.stage + static_cast<std::uint32_t>(i);
      return block_.shared.stages[next < config.stages ? next : next - config.stages].y[group_];
    });
    // The tensor cores read what ordinary stores wrote, of all threads.
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncwarp();
    meet_warpgroup(2 + group_);
  }

  __device__ void multiply_slices(int begin, int end) {
    auto& shared = block_.shared;
    std::uint32_t before = 0;  // the stage before this one
    int slice = begin;
#pragma unroll 1
    do {
      shared.full[reading_.stage].wait(reading_.parity);
      const auto& here = shared.stages[reading_.stage];
      // Groups take a slice each, or half of the rows of x.
      const std::uint64_t x = operand_descriptor(
          config.deep ? here.x[group_] : here.x[0] + group_ * (group_rows * slice_depth * 2));
      const std::uint64_t y = operand_descriptor(here.y[config.deep ? group_ : 0]);
      math_fence();
#pragma unroll
      for (int k = 0; k < slice_depth; k += 16)
        sm90::multiply<T, config.columns>(sums_, advanced(x, k), advanced(y, k), true);
      math_commit();
      math_wait<1>();
      if (slice > begin) release(before);
      before = reading_.stage;
      reading_.advance<config.stages>();
      slice += stage_slices(config);
    } while (slice < end);
    math_wait<0>();
    hold_sums(sums_);
    release(before);
  }

  /// Sums begin as zeros. If the first multiplication did not add instead, what a tile left in them
  /// would be alive until then, and the compiler would serialise the multiplications.
  __device__ void clear_sums() {
#pragma unroll
    for (float& sum : sums_) sum = 0;
  }

  /// Adds the sums of the second warpgroup to those of the first.
  __device__ void add_halves() {
    float4* const halves = block_.shared.halves + static_cast<int>(threadIdx.x) % group_threads;
    if (group_ == 1) {
#pragma unroll
      for (int i = 0; i < config.columns / 8; ++i)
        halves[i * group_threads] =
            make_float4(sums_[4 * i], sums_[4 * i + 1], sums_[4 * i + 2], sums_[4 * i + 3]);
    }
    meet_two_warpgroups(1);
    if (group_ == 0) {
#pragma unroll
      for (int i = 0; i < config.columns / 8; ++i)
        add_four(sums_ + 4 * i, halves[i * group_threads]);
    }
    // Before the next tile's are written.
    meet_two_warpgroups(1);
  }

  /// The stage may be overwritten, in all blocks that share y, as far as this warp is concerned.
  __device__ void release(std::uint32_t stage) {
    if (lane_ < config.cluster)
      block_.shared.empty[stage].arrive_at(block_.piece * config.cluster +
                                           static_cast<std::uint32_t>(lane_));
  }

  /// Each block of the cluster gets the sums of its share from the others, and stores it.
  __device__ void share_out() {
    constexpr int count = share_columns(config) / 2;
    const int thread = static_cast<int>(threadIdx.x) % group_threads;
    const int mine = static_cast<int>(block_.piece);
    auto& inbox = block_.shared.pieces;
#pragma unroll
    for (int share = 0; share < shares_of(config); ++share) {
      if (share == mine) continue;
      const auto piece = static_cast<std::uint32_t>(share);
      inbox.send(sums_ + share * count, block_.block_of_piece(piece), share, mine, group_, thread);
    }
#pragma unroll
    for (int share = 0; share < shares_of(config); ++share) {
      if (share != mine) continue;
      inbox.add(sums_ + share * count, group_, thread);
      stage_results(share);
    }
  }

  /// Hands the sums of a share to the storer, a chunk at a time.
  __device__ __forceinline__ void stage_results(int share) {
    auto& shared = block_.shared;
#pragma unroll
    for (int chunk = 0; chunk < chunks_of(config); ++chunk) {
      shared.given[group_][writing_.stage].wait(writing_.parity);
      std::byte* rows = shared.staging[group_][writing_.stage].rows;
      const int at = (share * chunks_of(config) + chunk) * chunk_columns(config);
#pragma unroll
      for (int j = 0; j + 8 < chunk_columns(config); j += 16) write_sixteen(rows, at, j);
      if constexpr (chunk_columns(config) % 16 != 0)
        write_eight(rows, at, chunk_columns(config) - 8);
      // The copy engine reads what ordinary stores wrote.
      if (!left_out(mutant::results_proxy)) cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
      shared.staged[group_][writing_.stage].arrive();
      writing_.advance<config.staging>();
    }
  }

  /// Columns j to j + 15 of a chunk, which begins at a column of the tile: four matrices of 8 x 8,
  /// this warp's 16 rows by 16 columns.
  __device__ void write_sixteen(std::byte* rows, int begin, int j) {
    const int matrix = lane_ / 8;
    // Matrices 0 and 1 are one below the other, 2 and 3 to the right of them.
    const int x = warp_ * 16 + matrix % 2 * 8;
    const int y = j + matrix / 2 * 8;
    const int row = (config.swapped ? y : x) + lane_ % 8;
    const int column = config.swapped ? x : y;
    const int swizzled = (column / 8) ^ (row % 8);
    const float* s = sums_ + (begin + j) / 2;
    store_matrices<config.swapped>(rows + row * (chunk_side * 2) + swizzled * 16,
                                   packed(s[0], s[1], T{}), packed(s[2], s[3], T{}),
                                   packed(s[4], s[5], T{}), packed(s[6], s[7], T{}));
  }
  /// The last columns of a chunk whose width is an odd multiple of 8: two matrices.
  __device__ void write_eight(std::byte* rows, int begin, int j) {
    static_assert(!config.swapped);
    const int row = warp_ * 16 + lane_ % 16;
    const int swizzled = (j / 8) ^ (row % 8);
    const float* s = sums_ + (begin + j) / 2;
    store_matrices(rows + row * (chunk_side * 2) + swizzled * 16, packed(s[0], s[1], T{}),
                   packed(s[2], s[3], T{}));
  }

  const block_view<config>& block_;
  Rows rows_;
  int group_;
  int warp_;
  int lane_;
  ring_cursor reading_;
  ring_cursor writing_;
  float sums_[config.columns / 2];
};

}  // namespace untax::sm90
