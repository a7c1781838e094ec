#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>

namespace untax::gpu {

/// A matrix in memory: the address of element (0, 0), and the elements from a row to the next one.
struct matrix_at {
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
};

/// A TMA tile of 2-byte elements that is only copied.
struct tma_tile_size {
  int rows = 1;
  int columns = 1;

  /// The bytes that TMA counts, also for a tile that ends beyond the matrix.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint32_t bytes() const noexcept {
    return static_cast<std::uint32_t>(rows * columns * 2);
  }
  friend bool operator==(const tma_tile_size&, const tma_tile_size&) = default;
};
/// The bytes of the largest TMA tile that is only copied. TMA reaches the rate of the link with it.
inline constexpr int tma_tile_bytes = 32768;
/// Whether TMA accepts such a tile, and it fits into the memory.
[[nodiscard]] constexpr bool fits_tma(const tma_tile_size& tile, int memory_bytes) noexcept {
  constexpr int most = 256;
  return tile.rows >= 1 && tile.rows <= most && tile.columns >= 1 && tile.columns <= most &&
         tile.columns % 8 == 0 && static_cast<int>(tile.bytes()) <= memory_bytes;
}

/// Matrices of one shape, each of which begins `between` elements after the one before, and the TMA
/// tiles in which TMA copies them.
struct tma_tiles_at {
  matrix_at first;
  int layers = 1;
  std::int64_t between = 0;
  int tma_tile_rows = 1;
  int tma_tile_columns = 1;
};

}  // namespace untax::gpu
