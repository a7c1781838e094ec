#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/shape.hpp"

namespace untax::gpu {

/// How a block of attention is made up for a width of heads. Some warps stream: each takes tiles of
/// its own, some keys and their values, through a ring of stages of its own, so nothing in the main
/// loop concerns more than a warp. The rings together keep enough bytes under way for one
/// multiprocessor's part of the memory's rate, and no more: behind a longer queue everything else
/// takes longer, and some multiprocessors get more out of it than others. Others combine, some of
/// which first merge what those that stream leave; who does not merge finds its share of what other
/// blocks have meanwhile, and waits for the own streams' end before it looks. Where partial results
/// go to other ranks, as many wait for what these have.
template <int width>
struct attention_config {
  static_assert(has_kernel_for(width));
  static constexpr int streaming = 4;  ///< warps
  /// Wide heads take the registers of more warps.
  static constexpr int combining = width < 256 ? 4 : 2;
  static constexpr int receiving = combining;
  /// Warps of a block that combine: all that do not stream, where none receives.
  [[nodiscard]] __device__ static int combining_here(bool receives) noexcept {
    return static_cast<int>(blockDim.x) / 32 - streaming - (receives ? receiving : 0);
  }
  /// Those of them that merge first: half, but two at least.
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

  /// Bytes from one row of queries to the next: no two rows of a matrix meet in a bank.
  static constexpr int query_pitch = row_bytes + 16;
  static constexpr int query_bytes = most_heads_of_group * query_pitch;  ///< of an item

  /// Warps hand on their results by rows; elements from one row to the next, so that no two of a
  /// half warp meet in a bank.
  static constexpr int merged_pitch = width + 8;
  static constexpr int merged_floats = most_heads_of_group * merged_pitch;  ///< of a warp
  static constexpr int statistics_floats = most_heads_of_group * 2;

  static_assert(stages >= 2);
};

}  // namespace untax::gpu
