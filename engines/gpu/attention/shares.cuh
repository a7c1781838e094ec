#pragma once

#include <cstdint>

#include "engines/gpu/attention/work.cuh"

namespace untax::gpu {

/// A range of rows or units.
struct count_share {
  int first = 0;
  int count = 0;
};

/// The blocks that have tiles of an item, and the share of each in its rows or units.
struct item_blocks {
  int from = 0;
  int count = 1;
  bool begins = true;  ///< block `from` begins with the item's first tile

  template <int keys>
  __device__ item_blocks(const attention_work<keys>& work, const attention_item& item)
      : from(work.block_of(item.first)),
        count(work.block_of(item.first + item.tiles - 1) - from + 1),
        begins(work.begin_of(from) == item.first) {}

  /// The calling block's share of `units` rows or units.
  [[nodiscard]] __device__ count_share share_of(int units) const {
    const auto mine = static_cast<unsigned>(static_cast<int>(blockIdx.x) - from);
    const auto all = static_cast<unsigned>(units);
    const auto blocks = static_cast<unsigned>(count);
    const auto first = static_cast<int>(mine * all / blocks);
    return {first, static_cast<int>((mine + 1) * all / blocks) - first};
  }
};

/// Distributes the rows of the calling block's items over `warps` warps: all rows of whole items,
/// and the block's share of the rows of split items. For each item, calls `await(row)` with the
/// warp's first row, then `take(row)` for each of its rows, until a call returns false. All lanes
/// of warp `number` must call this. If the first item is split, its rows follow the whole items:
/// the previous block reaches that item only at its end.
template <int keys, class Await, class Take>
[[nodiscard]] __device__ bool for_rows_of_block(const attention_work<keys>& work,
                                                const attention_shape& shape, int number, int warps,
                                                const Await& await, const Take& take) {
  segment_walk<keys> at(work);
  if (!at.valid()) return true;
  const attention_segment first = *at;
  bool waits = !first.whole();
  if (waits) at.advance();
  int next = number;
#pragma unroll 1
  while (waits || at.valid()) {
    const bool now = waits && (!at.valid() || !(*at).whole());
    const attention_segment segment = now ? first : *at;
    if (now) {
      waits = false;
    } else {
      at.advance();
    }
    const item_blocks blocks(work, segment.item);
    const count_share mine = blocks.share_of(shape.group);
    const std::int64_t item = segment.item.index(shape);
    const std::int64_t row = item * shape.group + mine.first;
    if (next < mine.count && !await(row + next)) return false;
#pragma unroll 1
    for (; next < mine.count; next += warps) {
      if (!take(row + next)) return false;
    }
    next -= mine.count;
  }
  return true;
}

}  // namespace untax::gpu
