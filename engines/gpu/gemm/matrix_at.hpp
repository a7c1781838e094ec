#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>

namespace untax::gpu {

/// A matrix in memory: element (0, 0), and how many elements lie between two rows.
struct matrix_at {
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
};

/// A TMA tile of elements of 2 bytes that only moves.
struct tma_tile_size {
  int rows = 1;
  int columns = 1;

  /// Also where one ends with the matrix.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint32_t bytes() const noexcept {
    return static_cast<std::uint32_t>(rows * columns * 2);
  }
  friend bool operator==(const tma_tile_size&, const tma_tile_size&) = default;
};
/// A TMA tile that only moves has so many bytes at most: what TMA needs for the rate of the link.
inline constexpr int tma_tile_bytes = 32768;
/// Whether TMA takes such a tile, and it fits a memory.
[[nodiscard]] constexpr bool fits_tma(const tma_tile_size& tile, int memory_bytes) noexcept {
  constexpr int most = 256;
  return tile.rows >= 1 && tile.rows <= most && tile.columns >= 1 && tile.columns <= most &&
         tile.columns % 8 == 0 && static_cast<int>(tile.bytes()) <= memory_bytes;
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
