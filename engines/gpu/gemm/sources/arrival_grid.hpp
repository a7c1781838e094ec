#pragma once

#include <untax/core/host_device.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/gemm/config.hpp"

namespace untax {

/// Chunks of A that a part of a tile waits for: so many, one below the other, in each of several
/// columns. They are numbered column by column, as a tile needs them.
struct awaited_chunks {
  int first = 0;  ///< counter of number 0
  int in_row = 1;
  int rows = 0;  ///< 0: there is nothing to wait for
  int columns = 0;
  int row = 0;    ///< where they begin, counted in chunks
  int begin = 0;  ///< the k-block at which the first column begins
  int chunk_k_blocks = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int count() const noexcept { return rows * columns; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counter(int i) const noexcept {
    const int column = i / rows;
    return first + (i - column * rows) * in_row + column;
  }
  /// The k-block after so many columns, or `end` after all.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int end_of(int column, int end) const noexcept {
    const int there = begin + column * chunk_k_blocks;
    return column == columns || there > end ? end : there;
  }
};

/// Which counters tell what of A has come, as plain numbers: the producer asks on its way, and the
/// layout computes in 64 bits. Chunks form one grid with gather = rows, and one for each source
/// with gather = k.
struct arrival_grid {
  bool by_rows = true;
  int base = 0;              ///< counter of the first chunk, in set 0
  int set_size = 0;          ///< counters of a set
  int source_size = 0;       ///< counters of a source
  int rows = 0;              ///< of A
  int shard_rows = 0;        ///< rows of a full shard, with gather = rows; of A elsewhere
  int shard_row_chunks = 1;  ///< chunks of a full shard, one below the other
  int chunk_rows = 1;
  int chunk_k_blocks = 1;
  int in_row = 1;       ///< chunks of a full shard, side by side
  int last_source = 0;  ///< whose shard is not empty
  int last_in_row = 1;  ///< chunks of that, side by side

  template <class Layout>
  [[nodiscard]] static constexpr arrival_grid of(const Layout& how) noexcept {
    const pieces rows = how.row_chunks(0);
    const pieces columns = how.col_chunks(0);
    arrival_grid grid;
    grid.by_rows = how.by_rows();
    grid.base = how.ready_counter(0, 0, 0);
    grid.set_size = how.ready_counter(1, 0, 0) - grid.base;
    grid.source_size = how.ready_counter(0, 1, 0) - grid.base;
    grid.rows = static_cast<int>(how.rows());
    grid.shard_rows = static_cast<int>(rows.whole.size);
    grid.shard_row_chunks = rows.count();
    grid.chunk_rows = static_cast<int>(rows.step);
    grid.chunk_k_blocks = static_cast<int>(ceil_div<std::int64_t>(columns.step, gpu::block_k));
    grid.in_row = columns.count();
    grid.last_source = how.last_source();
    grid.last_in_row = how.col_chunks(grid.last_source).count();
    return grid;
  }

  /// What rows [row, row_end) of A and k-blocks [k_block, k_block_end) touch: k-blocks of A with
  /// gather = rows, and of the shard of `source` with gather = k.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr awaited_chunks touched(int set, int source, int row,
                                                                   int row_end, int k_block,
                                                                   int k_block_end) const noexcept {
    awaited_chunks what;
    what.chunk_k_blocks = chunk_k_blocks;
    what.in_row = !by_rows && source == last_source ? last_in_row : in_row;
    const int column = k_block / chunk_k_blocks;
    int column_end = (k_block_end - 1) / chunk_k_blocks + 1;
    if (column_end > what.in_row) column_end = what.in_row;
    if (row_end > rows) row_end = rows;
    if (row >= row_end || column >= column_end) return what;
    what.row = row_in_grid(row);
    what.rows = row_in_grid(row_end - 1) + 1 - what.row;
    what.columns = column_end - column;
    what.begin = column * chunk_k_blocks;
    what.first = base + set * set_size + (by_rows ? 0 : source * source_size) +
                 what.row * what.in_row + column;
    return what;
  }
  /// With gather = rows, the source of a row of chunks.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int source_of(int row) const noexcept {
    return row / shard_row_chunks;
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int row_in_grid(int row) const noexcept {
    const int shard = row / shard_rows;
    return shard * shard_row_chunks + (row - shard * shard_rows) / chunk_rows;
  }
};

}  // namespace untax
