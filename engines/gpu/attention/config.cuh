#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/shape.hpp"

namespace untax::gpu {

/// The structure of an attention block for a width of heads. Streaming warps load tiles, some keys
/// and their values, each warp through its own ring of stages, so the main loop needs no
/// synchronisation between warps. The rings together keep enough bytes in flight for one
/// multiprocessor's share of the memory bandwidth, and no more: a longer queue delays all other
/// accesses, and gives some multiprocessors more bandwidth than others. Combining warps handle
/// items that several blocks have. Some of them first merge the results of the streaming warps. The
/// others meanwhile compute their share, and poll for it once this block's streams have ended.
/// Where partial results go to other ranks, as many warps receive theirs.
template <int width>
struct attention_config {
  static_assert(has_kernel_for(width));
  static constexpr int streaming = 4;  ///< warps
  /// With wide heads, threads need more registers, so fewer warps fit.
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
  static constexpr int keys = width == 64 ? 32 : 16;  ///< of a tile
  static constexpr int row_bytes = 2 * width;
  static constexpr int tile_bytes = 2 * keys * row_bytes;
  static constexpr int bytes_under_way = 64 << 10;
  static constexpr int stages = bytes_under_way / (streaming * tile_bytes) + 1;
  static constexpr int ring_bytes = streaming * stages * tile_bytes;

  /// Row pitch of the queries in bytes: rows of a matrix have no bank conflicts.
  static constexpr int query_pitch = row_bytes + 16;
  static constexpr int query_bytes = most_heads_of_group * query_pitch;  ///< of an item

  /// Row pitch, in elements, of the results that warps leave to be merged: accesses of a half warp
  /// have no bank conflicts.
  static constexpr int merged_pitch = width + 8;
  static constexpr int merged_floats = most_heads_of_group * merged_pitch;  ///< of a warp
  static constexpr int statistics_floats = most_heads_of_group * 2;

  static_assert(stages >= 2);
};

}  // namespace untax::gpu
