#pragma once

#include <cstdint>

namespace untax::gpu {

/// A matrix in memory: element (0, 0), and how many elements lie between two rows.
struct matrix_at {
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
};

/// A TMA tile that only moves has so many bytes at most: what TMA needs for the rate of the link.
inline constexpr int tma_tile_bytes = 32768;
/// Whether TMA takes a tile of so many rows and columns, of 2 bytes an element, and it fits a
/// memory.
[[nodiscard]] constexpr bool fits_tma(int rows, int columns, int memory_bytes) noexcept {
  constexpr int most = 256;
  return rows >= 1 && rows <= most && columns >= 1 && columns <= most && columns % 8 == 0 &&
         rows * columns * 2 <= memory_bytes;
}

/// Matrices of one shape, of which one begins `between` elements behind the other, and TMA
/// tiles in which the copy engine moves them.
struct tma_tiles_at {
  matrix_at first;
  int layers = 1;
  std::int64_t between = 0;
  int tma_tile_rows = 1;
  int tma_tile_columns = 1;
};

}  // namespace untax::gpu
