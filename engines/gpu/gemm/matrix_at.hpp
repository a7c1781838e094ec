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
