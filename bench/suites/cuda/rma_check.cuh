#pragma once

#include <cstdint>

#include "bench/suites/cuda/rma_kernels.cuh"

// Checks of the rma suite that every byte arrived, and that no other byte was written.

namespace untax::bench {

/// Word `i` of the source of `rank`; words that could be confused differ.
[[nodiscard]] __device__ inline std::uint32_t pattern(int rank, std::int64_t i) {
  auto mixed = static_cast<std::uint32_t>(i * 2654435761 + (i >> 32U) + rank * 40503);
  mixed ^= mixed >> 15U;
  return mixed * 2246822519U;
}

static __global__ void fill_pattern(std::uint32_t* words, std::int64_t count, int rank) {
  const std::int64_t step = device_grid::size();
  for (std::int64_t i = device_grid::thread_rank(); i < count; i += step)
    words[i] = pattern(rank, i);
}

/// Counts the words of `to` that differ from the source. Beside a tile, and after the last byte,
/// there has to be poison (all bits set). `pitch` is that of the source; 0: no tile.
static __global__ void count_wrong(const std::uint32_t* to, std::int64_t bytes, std::int64_t span,
                                   int source, std::int64_t pitch, unsigned long long* wrong) {
  constexpr std::int64_t row_words = to_stride / 2;
  unsigned long long found = 0;
  const std::int64_t step = device_grid::size();
  for (std::int64_t i = device_grid::thread_rank(); i < span / 4; i += step) {
    const std::int64_t row = i / row_words;
    const std::int64_t col = i % row_words;
    const bool moved =
        pitch > 0 ? row < bytes / 2 / tile_cols && col < tile_cols / 2 : i < bytes / 4;
    const std::int64_t at = pitch > 0 ? row * (pitch / 2) + col : i;
    if (to[i] != (moved ? pattern(source, at) : 0xffffffffU)) ++found;
  }
  if (found > 0) atomicAdd(wrong, found);
}

}  // namespace untax::bench
