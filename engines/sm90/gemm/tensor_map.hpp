#pragma once

#include <cuda.h>

#include <cstdint>

#include <untax/core/types.hpp>

namespace untax::sm90 {

/// A matrix for the copy engine: rows without gaps, boxes of `box_rows` rows and 64 elements, in
/// shared memory with the swizzle of 128 bytes. `data` is at a multiple of 16 bytes, and so is the
/// length of a row. L2 reads `together` bytes from memory at once, 128 or 256. Throws
/// `invalid_argument` or `unsupported`.
[[nodiscard]] CUtensorMap tensor_map_of(const void* data, dtype type, std::int64_t rows,
                                        std::int64_t columns, int box_rows, int together = 256);

}  // namespace untax::sm90
