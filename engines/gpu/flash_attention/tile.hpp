#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>

#include "engines/gpu/flash_attention/shape.hpp"

namespace untax::gpu {

/// The unit of work of a block: some query rows of a sequence, for one head.
struct flash_tile {
  int batch = 0;
  int head = 0;
  int row = 0;     ///< the first row, in the matrix of queries
  int rows = 0;    ///< number of rows; 0 or less: nothing to do
  int key = 0;     ///< the first row of its sequence in the matrices of keys and values
  int keys = 0;    ///< number of keys of the sequence
  int sees = 0;    ///< keys that the first row sees if causal; may be negative. Each further row
                   ///< sees one more
  int blocks = 0;  ///< blocks of keys that any row of the tile sees

  /// The number of keys that a row of the tile sees.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int seen_by(int row_of_tile, bool causal) const {
    const int all = causal && sees + row_of_tile < keys ? sees + row_of_tile : keys;
    return all > 0 ? all : 0;
  }
  /// The number of blocks, from block 0 on, that all rows from `row_of_tile` on see completely.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int seen_blocks(int row_of_tile, int block_keys,
                                                            bool causal) const {
    return seen_by(row_of_tile, causal) / block_keys;
  }
};

/// The tiles of a problem, numbered over sequence, head and rows; rows change fastest.
struct flash_tiles {
  int batch = 1;
  int heads = 1;
  int row_blocks = 0;  ///< of the longest sequence
  int tile_rows = 128;
  int block_keys = 128;
  bool causal = false;

  [[nodiscard]] static constexpr flash_tiles of(const flash_shape& s) {
    const flash_config c = flash_config::of(s.head_dim, s.causal);
    return {s.batch, s.heads, (s.queries + c.rows() - 1) / c.rows(), c.rows(), c.keys, s.causal};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int count() const { return batch * heads * row_blocks; }

  /// The rows of a sequence in a matrix: the first row, and the number of rows.
  struct range {
    int begin = 0;
    int count = 0;
  };
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr range range_of(int sequence, int length,
                                                                  const std::int32_t* begins) {
    if (begins == nullptr) return {sequence * length, length};
    return {begins[sequence], begins[sequence + 1] - begins[sequence]};
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int batch_of(int number) const {
    return number / (row_blocks * heads);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr flash_tile tile(int number, range queries,
                                                            range keys) const {
    flash_tile t;
    const int first = number % row_blocks * tile_rows;
    t.batch = batch_of(number);
    t.head = number / row_blocks % heads;
    t.row = queries.begin + first;
    t.rows = queries.count - first < tile_rows ? queries.count - first : tile_rows;
    t.key = keys.begin;
    t.keys = keys.count;
    t.sees = first + 1 + keys.count - queries.count;
    const int seen = t.rows > 0 ? t.seen_by(t.rows - 1, causal) : 0;
    t.blocks = (seen + block_keys - 1) / block_keys;
    return t;
  }
};

}  // namespace untax::gpu
