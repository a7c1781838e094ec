#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/sm90/attention/shape.hpp"

namespace untax::sm90 {

/// How a block of attention is made up for a width of heads. Each warp streams tiles of its own,
/// some keys and their values, through a ring of stages of its own: nothing in the main loop
/// concerns more than a warp. The rings together keep enough bytes under way for one
/// multiprocessor's part of the memory's rate.
template <int width>
struct attention_config {
  static_assert(has_kernel_for(width));
  static constexpr int warps = 4;
  static constexpr int threads = warps * 32;
  static constexpr int keys = width == 64 ? 32 : 16;  ///< of a tile
  static constexpr int row_bytes = 2 * width;
  static constexpr int tile_bytes = 2 * keys * row_bytes;
  static constexpr int stages = (192 << 10) / (warps * tile_bytes);
  static constexpr int ring_bytes = warps * stages * tile_bytes;

  /// Elements between rows of what warps hand to each other: no two of a quarter warp meet in a
  /// bank.
  static constexpr int pitch = width + 8;
  static constexpr int regions = 2;
  static constexpr int region_floats = most_heads_of_group * pitch;
  static constexpr int statistics_floats = most_heads_of_group * 2;
  static constexpr std::size_t shared_bytes =
      ring_bytes + sizeof(float) * regions * (region_floats + statistics_floats) + 16;
};

/// A part of the shared memory of a block in which results of 16 query heads lie: `rows`, not
/// normalised while warps merge, and for each a maximum and a sum, or two statistics.
template <int width>
struct result_region {
  float* rows;
  float* statistics;

  [[nodiscard]] __device__ float* row(int g) const noexcept {
    return rows + g * attention_config<width>::pitch;
  }
};

}  // namespace untax::sm90
