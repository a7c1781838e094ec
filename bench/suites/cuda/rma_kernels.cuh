#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/world/device_world.cuh>

// The kernels that move bytes in the rma suite, as a kernel author would write them.

namespace untax::bench {

/// The ways to move bytes.
enum class copy_by {
  block_stores,  ///< each block puts its part
  grid_stores,   ///< all blocks put together, word by word
  bulk,          ///< each block puts its part with TMA
  block_tile,    ///< the same three ways with tiles
  grid_tile,
  bulk_tile,
  uneven_tile,  ///< as grid_tile, with a row pitch at the source that loads the links unevenly
};

[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool is_bulk(copy_by m) {
  return m == copy_by::bulk || m == copy_by::bulk_tile;
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool is_tile(copy_by m) {
  return m >= copy_by::block_tile;
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int threads_of(copy_by m) {
  return is_bulk(m) ? 128 : 1024;
}

using ring = bulk_ring<>;
using half_word = std::uint16_t;  // an element of 2 bytes

/// Tiles are 4096 elements wide in matrices of 6208 and 8192: rows of 8 KB, 12.125 and 16 KB apart.
inline constexpr std::int64_t tile_cols = 4096;
inline constexpr std::int64_t to_stride = 8192;
/// Which of the 18 links carries an access depends on its address, with a pattern of multiples of 3
/// * 4 KB. If rows of 8 KB are 12 KB apart, a third of the links carries 37.5 %, in any order of
/// fetching. A little padding distributes the load evenly.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t from_stride(copy_by m) {
  return m == copy_by::uneven_tile ? 6144 : 6208;
}
/// The most bytes of a matrix that contains `bytes` bytes of tiles.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t matrix_bytes(std::int64_t bytes) {
  return bytes / tile_cols * to_stride;
}

/// One launch: moves `bytes` bytes `turns` times, each time `bytes` further in `span` bytes.
struct move_request {
  half_word* to = nullptr;
  const half_word* from = nullptr;
  std::int64_t bytes = 0;
  std::int64_t span = 0;
  int turns = 1;
};

template <copy_by how>
__device__ void move_once(const device_block& block, ring* engine, half_word* to,
                          const half_word* from, std::int64_t count) {
  const int index = static_cast<int>(blockIdx.x);
  const int parts = static_cast<int>(gridDim.x);
  if constexpr (how == copy_by::grid_stores) {
    put(device_grid{}, to, from, count);
  } else if constexpr (!is_tile(how)) {
    const part mine = part_of<2048>(count, index, parts);
    if constexpr (how == copy_by::bulk) {
      bulk_put(block, *engine, to + mine.begin, from + mine.begin, mine.count);
    } else {
      put(block, to + mine.begin, from + mine.begin, mine.count);
    }
  } else {
    const std::int64_t rows = count / tile_cols;
    const tile_view<half_word> target(to, rows, tile_cols, to_stride);
    const tile_view<const half_word> source(from, rows, tile_cols, from_stride(how));
    if constexpr (how == copy_by::grid_tile || how == copy_by::uneven_tile) {
      copy(device_grid{}, target, source);
    } else {
      const part mine = part_of(rows, index, parts);
      const auto to_part = target.part(mine.begin, 0, mine.count, tile_cols);
      const auto from_part = source.part(mine.begin, 0, mine.count, tile_cols);
      if constexpr (how == copy_by::bulk_tile) {
        bulk_copy(block, *engine, to_part, from_part, to_part.bounds());
      } else {
        copy(block, to_part, from_part);
      }
    }
  }
}

template <copy_by how>
__global__ void __launch_bounds__(threads_of(how), 1) move_kernel(move_request work) {
  const device_block block;
  const auto turns = [&](ring* engine) {
    constexpr std::int64_t size = sizeof(half_word);
    std::int64_t begin = 0;
    for (int turn = 0; turn < work.turns; ++turn) {
      if (begin + work.bytes > work.span) begin = 0;
      const std::int64_t row = begin / (tile_cols * size);
      const std::int64_t to_begin = is_tile(how) ? row * to_stride : begin / size;
      const std::int64_t from_begin = is_tile(how) ? row * from_stride(how) : begin / size;
      move_once<how>(block, engine, work.to + to_begin, work.from + from_begin, work.bytes / size);
      begin += work.bytes;
    }
  };
  if constexpr (is_bulk(how)) {
    extern __shared__ std::byte shared[];
    ring engine(block, *reinterpret_cast<ring::memory*>(shared));
    turns(&engine);
  } else {
    turns(nullptr);
  }
}

}  // namespace untax::bench
