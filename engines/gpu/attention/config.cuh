#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/shape.hpp"

namespace untax::gpu {

/// The structure of an attention block for a head width. Streaming warps load tiles: some keys and
/// their values. Each has its own ring of stages, so the main loop needs no synchronisation between
/// warps. All rings together keep enough bytes in flight for one multiprocessor's share of the
/// memory bandwidth, and no more: a longer queue delays all other accesses, and gives some
/// multiprocessors more bandwidth than others. Combining warps combine items that are split over
/// blocks. Some of them first merge the results of the streaming warps; the rest meanwhile compute
/// their share of the rows, and poll for packets once the block's streams have ended. If partial
/// results of other ranks arrive, a block has as many receiving warps as combining warps.
template <int width>
struct attention_config {
  static_assert(has_kernel_for(width));
  static constexpr int streaming = 4;  ///< warps
  /// Wide heads need more registers per thread, so fewer warps fit.
  static constexpr int combining = width < 256 ? 4 : 2;
  static constexpr int receiving = combining;
  /// Combining warps of a block: all that neither stream nor receive.
  [[nodiscard]] __device__ static int combining_here(bool receives) noexcept {
    return static_cast<int>(blockDim.x) / 32 - streaming - (receives ? receiving : 0);
  }
  /// Combining warps that merge first: half of them, but at least two.
  [[nodiscard]] __device__ static int merging_here(bool receives) noexcept {
    return max(combining_here(receives) / 2, 2);
  }
  static constexpr int fewest_threads = (streaming + combining) * 32;
  static constexpr int most_threads = fewest_threads + receiving * 32;
  static constexpr int streaming_threads = streaming * 32;
  static constexpr int keys = width == 64 ? 32 : 16;  ///< per tile
  static constexpr int row_bytes = 2 * width;
  static constexpr int tile_bytes = 2 * keys * row_bytes;
  static constexpr int bytes_under_way = 64 << 10;
  static constexpr int stages = bytes_under_way / (streaming * tile_bytes) + 1;
  static constexpr int ring_bytes = streaming * stages * tile_bytes;

  /// Row pitch of the queries in bytes, padded so that ldmatrix has no bank conflicts.
  static constexpr int query_pitch = row_bytes + 16;
  static constexpr int query_bytes = most_heads_of_group * query_pitch;  ///< per item

  /// Row pitch, in floats, of the results that streaming warps store for the merge, padded so that
  /// accesses of a half warp have no bank conflicts.
  static constexpr int merged_pitch = width + 8;
  static constexpr int merged_floats = most_heads_of_group * merged_pitch;  ///< per warp
  static constexpr int statistics_floats = most_heads_of_group * 2;

  static_assert(stages >= 2);
};

}  // namespace untax::gpu
