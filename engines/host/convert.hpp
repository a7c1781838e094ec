#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/core/types.hpp>

namespace untax::host {

/// A rectangle of elements in memory.
struct tile_memory {
  std::byte* data = nullptr;
  std::int64_t stride = 0;
  dtype type = dtype::f32;
};

/// to[rows x cols] = from, element by element, as fp32. `to` has `to_stride` floats a row.
void widen(const tile_memory& from, std::int64_t rows, std::int64_t cols, float* to,
           std::int64_t to_stride);

/// to[rows x cols] = from, rounded to nearest even to the type of `to`.
void narrow(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t cols,
            const tile_memory& to);

/// Rounds a tile of floats to the precision of `type`.
void round_to(dtype type, float* values, std::int64_t stride, std::int64_t rows, std::int64_t cols);

/// sum[rows x cols] += from (or = from), in fp32.
void accumulate(const tile_memory& from, std::int64_t rows, std::int64_t cols, bool overwrite,
                float* sum, std::int64_t sum_stride);

/// to[rows x cols] = from. Both have one element type. They are one rectangle, or do not overlap.
void copy_tile(const tile_memory& from, std::int64_t rows, std::int64_t cols,
               const tile_memory& to);

}  // namespace untax::host
