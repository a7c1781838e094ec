#pragma once

#include "engines/gpu/comm/messages.hpp"
#include "engines/gpu/gemm/sources/arrival_grid.hpp"

namespace untax {

/// In which segment rows of tiles and k-blocks lie, where that lies in memory, and what it waits
/// for: plain arithmetic, the same for every role and on the host. There is a segment for each
/// source, rows of tiles with gather = rows, k-blocks with gather = k; or one, where all of A is
/// collected.
struct gather_segments {
  int rows = 0;                       ///< of tiles, where a segment is rows; 0 elsewhere
  int k_blocks = 0;                   ///< where it is k-blocks; all of them elsewhere
  int sources[gpu::most_ranks] = {};  ///< of the segments
  /// Where row 0 of a segment lies in set 0 of the inbox; -1: it is the rank's own and not there.
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

  /// The segment in which a k-block of rows from `row` on lies.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int at(int row, int k_block) const noexcept {
    return rows > 0 ? row / rows : k_block / k_blocks;
  }
  /// Whether a segment is the rank's own, and read where it lies.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool is_own(int segment) const noexcept {
    return inbox_rows[segment] < 0;
  }
  /// Where row 0 of a segment lies in what its map describes, if a set has so many rows.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int row_in_map(int segment, int set,
                                                           int set_rows) const noexcept {
    return is_own(segment) ? 0 : inbox_rows[segment] + set * set_rows;
  }

  /// K-blocks that lie in one place each.
  struct part {
    int segment = 0;
    int row = 0;    ///< in what the segment's map of A describes
    int first = 0;  ///< the k-block at column 0 of that, and of the segment's map of B
    int end = 0;    ///< the k-block after the last one
  };
  /// The one in which a k-block lies, for rows of tiles from `row` on, of A with `all` k-blocks.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr part part_of(int row, int k_block, int all, int set,
                                                         int set_rows) const noexcept {
    const int s = at(row, k_block);
    if (rows > 0) return {s, row - s * rows + row_in_map(s, set, set_rows), 0, all};
    const int first = s * k_blocks;
    return {s, row + row_in_map(s, set, set_rows), first, first + k_blocks};
  }
  /// The row of C to which rows of tiles from `row` on go: in the segment's map of C where a
  /// segment is rows.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int row_of_result(int row) const noexcept {
    return rows == 0 ? row : row - row / rows * rows;
  }

  /// What rows of tiles and k-blocks of a segment wait for.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr awaited_chunks awaited(const arrival_grid& grid,
                                                                   int set, int row, int count,
                                                                   int begin,
                                                                   int end) const noexcept {
    if (rows > 0) {
      const int s = row / rows;
      const int source = sources[s];
      if (is_own(s)) return {};
      // Rows of the next source are not this tile's, though it may reach so far.
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
  /// Who sends number i of what k-blocks from `begin` on wait for.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int sender_of(const arrival_grid& grid,
                                                          const awaited_chunks& what, int i,
                                                          int begin) const noexcept {
    return grid.by_rows ? grid.source_of(what.row + i % what.rows) : sources[begin / k_blocks];
  }
};

}  // namespace untax
