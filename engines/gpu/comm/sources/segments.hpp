#pragma once

#include <untax/core/host_device.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/gemm/config.hpp"

namespace untax {

/// The chunks of A for which a part of a tile waits: `rows` chunks, one below the other, in each of
/// `columns` columns. They are numbered column by column, as a tile needs them.
struct awaited_chunks {
  int first = 0;  ///< the counter of chunk 0
  int in_row = 1;
  int rows = 0;  ///< 0: nothing to wait for
  int columns = 0;
  int row = 0;    ///< the first row of chunks
  int begin = 0;  ///< the k-block at which the first column begins
  int chunk_k_blocks = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int count() const noexcept { return rows * columns; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counter(int i) const noexcept {
    const int column = i / rows;
    return first + (i - column * rows) * in_row + column;
  }
  /// The k-block after `column` columns, or `end` after all columns.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int end_of(int column, int end) const noexcept {
    const int there = begin + column * chunk_k_blocks;
    return column == columns || there > end ? end : there;
  }
};

/// Which counters tell how far A has arrived, as plain 32-bit numbers: the producer computes them
/// while it runs, and the layout computes in 64 bits. Chunks form one grid with gather = rows, and
/// one grid per source with gather = k.
struct arrival_grid {
  bool by_rows = true;
  int base = 0;              ///< counter of the first chunk, in set 0
  int set_size = 0;          ///< counters per set
  int source_size = 0;       ///< counters per source
  int rows = 0;              ///< rows of A
  int shard_rows = 0;        ///< rows of a full shard with gather = rows; else rows of A
  int shard_row_chunks = 1;  ///< chunks of a full shard, one below the other
  int chunk_rows = 1;
  int chunk_k_blocks = 1;
  int in_row = 1;       ///< chunks of a full shard, side by side
  int last_source = 0;  ///< the last rank whose shard is not empty
  int last_in_row = 1;  ///< chunks of that shard, side by side

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

  /// The chunks that contain rows [row, row_end) and k-blocks [k_block, k_block_end): k-blocks of A
  /// with gather = rows, and of the shard of `source` with gather = k.
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
  /// The source of a row of chunks, with gather = rows.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int source_of(int row) const noexcept {
    return row / shard_row_chunks;
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int row_in_grid(int row) const noexcept {
    const int shard = row / shard_rows;
    return shard * shard_row_chunks + (row - shard * shard_rows) / chunk_rows;
  }
};

/// Tells in which segment rows of tiles and k-blocks lie, where it is in memory, and for which
/// counters it waits. Plain arithmetic, the same for every role and on the host. There is one
/// segment per source, rows of tiles with gather = rows, k-blocks with gather = k; or a single
/// segment, if all of A is collected.
struct gather_segments {
  int rows = 0;                       ///< rows of tiles per segment, if segments are rows; else 0
  int k_blocks = 0;                   ///< k-blocks per segment, if segments are k-blocks; else all
  int sources[gpu::most_ranks] = {};  ///< of each segment
  /// Row 0 of a segment in set 0 of the inbox; -1: the segment is the rank's own shard.
  int inbox_rows[gpu::most_ranks] = {};

  template <class Plan, class Layout>
  [[nodiscard]] static gather_segments of(const Plan& plan, const Layout& how) {
    gather_segments made;
    made.rows = plan.segment_rows;
    made.k_blocks = plan.segment_k_blocks;
    for (std::size_t i = 0; i < plan.sources.size(); ++i) {
      const int source = plan.sources[i];
      made.sources[i] = source;
      made.inbox_rows[i] = source == how.rank() && !how.collected()
                               ? -1
                               : static_cast<int>(how.inbox_row(source, 0));
    }
    return made;
  }

  /// The segment of a k-block, for rows of tiles from `row` on.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int at(int row, int k_block) const noexcept {
    return rows > 0 ? row / rows : k_block / k_blocks;
  }
  /// Whether a segment is the rank's own shard, and read in place.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool is_own(int segment) const noexcept {
    return inbox_rows[segment] < 0;
  }
  /// The first row of a segment in the matrix of its map, if a set has `set_rows` rows.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int row_in_map(int segment, int set,
                                                           int set_rows) const noexcept {
    return is_own(segment) ? 0 : inbox_rows[segment] + set * set_rows;
  }

  /// K-blocks that lie in one place.
  struct part {
    int segment = 0;
    int row = 0;    ///< in the matrix of the segment's map of A
    int first = 0;  ///< the k-block at column 0 of that matrix, and of the segment's map of B
    int end = 0;    ///< the k-block after the last one
  };
  /// The part that contains a k-block, for rows of tiles from `row` on; A has `all` k-blocks.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr part part_of(int row, int k_block, int all, int set,
                                                         int set_rows) const noexcept {
    const int s = at(row, k_block);
    if (rows > 0) return {s, row - s * rows + row_in_map(s, set, set_rows), 0, all};
    const int first = s * k_blocks;
    return {s, row + row_in_map(s, set, set_rows), first, first + k_blocks};
  }
  /// The row of C for rows of tiles from `row` on: in the segment's map of C, if segments are rows.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int row_of_result(int row) const noexcept {
    return rows == 0 ? row : row - row / rows * rows;
  }

  /// The chunks for which rows of tiles and k-blocks of a segment wait.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr awaited_chunks awaited(const arrival_grid& grid,
                                                                   int set, int row, int count,
                                                                   int begin,
                                                                   int end) const noexcept {
    if (rows > 0) {
      const int s = row / rows;
      const int source = sources[s];
      if (is_own(s)) return {};
      // The tile may reach into the rows of the next source, which are not part of it.
      const int shard = source * grid.shard_rows;
      const int first = row - s * rows;
      const int last = first + count < grid.shard_rows ? first + count : grid.shard_rows;
      return grid.touched(set, source, shard + first, shard + last, begin, end);
    }
    if (grid.by_rows) return grid.touched(set, 0, row, row + count, begin, end);
    const int s = begin / k_blocks;
    const int source = sources[s];
    if (is_own(s)) return {};
    const int first = s * k_blocks;
    awaited_chunks what = grid.touched(set, source, row, row + count, begin - first, end - first);
    what.begin += first;
    return what;
  }
  /// The rank that sends chunk number i of `what`, for k-blocks from `begin` on.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int sender_of(const arrival_grid& grid,
                                                          const awaited_chunks& what, int i,
                                                          int begin) const noexcept {
    return grid.by_rows ? grid.source_of(what.row + i % what.rows) : sources[begin / k_blocks];
  }
};

}  // namespace untax
