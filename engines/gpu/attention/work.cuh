#pragma once

#include <cstdint>

#include "engines/gpu/attention/shape.hpp"

namespace untax::gpu {

/// An item, and where it stands in the list of all tiles of a rank: items follow each other by
/// head, then by sequence. So blocks some way apart are at the same keys at the same time, each at
/// a head of its own, and what lies side by side in memory is read together. A sequence of which
/// the rank holds nothing has one tile all the same, so that somebody says so. Behind each item
/// there is room in the list for some tiles that are not there: what its end costs the block that
/// comes to it.
struct attention_item {
  int sequence = 0;
  int head = 0;
  int length = 0;
  int length_behind = 0;  ///< of the next sequence, asked for early
  int tiles = 0;
  int first = 0;  ///< its first tile, in the list

  [[nodiscard]] __device__ int index(const attention_shape& shape) const noexcept {
    return sequence * shape.kv_heads + head;
  }
};

/// How the tiles are assigned: each block gets the same number, or one more, one behind the other,
/// whatever the lengths, and so all multiprocessors end together; where lengths are equal, whole
/// items if that leaves few blocks idle. Every warp finds that out for itself.
template <int keys_of_tile>
class attention_work {
 public:
  /// Below that many tiles a block is not worth what combining its part costs.
  static constexpr int least_tiles = 8;
  /// With more of them a block, some blocks left idle cost more than combining (measured on H200).
  static constexpr int most_tiles_of_whole_items = 600;

  /// For `blocks` blocks.
  __device__ attention_work(const attention_shape& shape, const std::int32_t* lengths, int blocks)
      : shape_(shape), lengths_(lengths) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    first_ = span_from(0);
    of_head_ = __shfl_sync(everybody, first_.up_to, 31);
    const int length = __shfl_sync(everybody, first_.length, 0);
    bool equal = lane >= shape_.batch || first_.length == length;
    if (shape_.batch > 32) {
      int more = 0;
      for (int b = 32 + lane; b < shape_.batch; b += 32) {
        const int other = length_of(b);
        more += room_of(tiles_of(other));
        equal = equal && other == length;
      }
      for (int away = 16; away > 0; away /= 2) more += __shfl_xor_sync(everybody, more, away);
      of_head_ += more;
    }
    const auto total = static_cast<unsigned>(of_head_ * shape_.kv_heads);
    const unsigned worth = (total + least_tiles - 1) / least_tiles;
    blocks_ = min(static_cast<int>(worth), blocks);
    const bool is_short = total <= static_cast<unsigned>(most_tiles_of_whole_items * blocks);
    if (__all_sync(everybody, equal) && blocks_ == blocks && is_short)
      blocks_ = with_whole_items(shape_.batch * shape_.kv_heads, blocks);
    each_ = static_cast<int>(total / static_cast<unsigned>(blocks_));
    more_ = static_cast<int>(total) - each_ * blocks_;
  }

  /// Blocks that have anything to do.
  [[nodiscard]] __device__ int blocks() const noexcept { return blocks_; }
  /// The first `more_` blocks have one tile more.
  [[nodiscard]] __device__ int begin_of(int block) const noexcept {
    return block * each_ + (block < more_ ? block : more_);
  }
  /// Which block has a tile.
  [[nodiscard]] __device__ int block_of(int tile) const noexcept {
    const int behind = tile - more_ * (each_ + 1);
    const int from = behind < 0 ? tile : behind;
    const int size = behind < 0 ? each_ + 1 : each_;
    return (behind < 0 ? 0 : more_) +
           static_cast<int>(static_cast<unsigned>(from) / static_cast<unsigned>(size));
  }
  /// The item that a tile belongs to. By all lanes of a warp.
  [[nodiscard]] __device__ attention_item find(int tile) const {
    attention_item item;
    item.head = static_cast<int>(static_cast<unsigned>(tile) / static_cast<unsigned>(of_head_));
    int before = item.head * of_head_;
    span lanes = first_;
    for (int begin = 0;; begin += 32) {
      if (begin > 0) lanes = span_from(begin);
      const unsigned behind = __ballot_sync(everybody, before + lanes.up_to > tile);
      if (behind != 0 || begin + 32 >= shape_.batch) {
        const int at = __ffs(behind) - 1;
        item.sequence = begin + at;
        item.length = __shfl_sync(everybody, lanes.length, at);
        item.tiles = tiles_of(item.length);
        item.first = before + __shfl_sync(everybody, lanes.up_to, at) - room_of(item.tiles);
        return item;
      }
      before += __shfl_sync(everybody, lanes.up_to, 31);
    }
  }
  /// Where the next item begins.
  [[nodiscard]] __device__ static int behind(const attention_item& item) noexcept {
    return item.first + room_of(item.tiles);
  }
  __device__ void advance(attention_item& item) const {
    item.first = behind(item);
    item.sequence = sequence_behind(item);
    if (item.sequence == 0) ++item.head;
    item.length = item.length_behind;
    item.tiles = tiles_of(item.length);
    look_behind(item);
  }
  /// Asks for what the item behind this one needs to be known.
  __device__ void look_behind(attention_item& item) const {
    item.length_behind = length_of(sequence_behind(item));
  }
  /// The index of the item behind another one.
  [[nodiscard]] __device__ int index_behind(const attention_item& item) const noexcept {
    const int sequence = sequence_behind(item);
    return sequence * shape_.kv_heads + item.head + (sequence == 0 ? 1 : 0);
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  /// What a lane knows of 32 sequences: the length of its own, and the tiles of a head up to its
  /// end.
  struct span {
    int length;
    int up_to;
  };
  [[nodiscard]] __device__ span span_from(int begin) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bool there = begin + lane < shape_.batch;
    span mine;
    mine.length = there ? length_of(begin + lane) : 0;
    mine.up_to = there ? room_of(tiles_of(mine.length)) : 0;
#pragma unroll
    for (int away = 1; away < 32; away *= 2) {
      const int other = __shfl_up_sync(everybody, mine.up_to, away);
      if (lane >= away) mine.up_to += other;
    }
    return mine;
  }

  [[nodiscard]] __device__ int sequence_behind(const attention_item& item) const noexcept {
    return item.sequence + 1 < shape_.batch ? item.sequence + 1 : 0;
  }
  /// A length that cannot be is nobody's to refuse any more; it may not lead out of the cache.
  [[nodiscard]] __device__ int length_of(int sequence) const {
    const int length = __ldg(lengths_ + sequence);
    return min(max(length, 0), static_cast<int>(shape_.keys));
  }
  [[nodiscard]] __device__ static int tiles_of(int length) noexcept {
    return length == 0 ? 1 : (length + keys_of_tile - 1) / keys_of_tile;
  }
  [[nodiscard]] __device__ static int room_of(int tiles) noexcept { return tiles + end_tiles; }

  /// As many blocks as have the same number of whole items each, so that nothing has to be
  /// combined, if that leaves at most one in 32 idle. Else all of them.
  [[nodiscard]] __device__ static int with_whole_items(int items, int blocks) noexcept {
    const int each = (items + blocks - 1) / blocks;
    const int all = items / each;
    return all * each == items && 32 * (blocks - all) <= blocks ? all : blocks;
  }

  const attention_shape& shape_;
  const std::int32_t* lengths_;
  int of_head_;  // tiles of a head of all sequences
  int blocks_;
  int each_;
  int more_;
  span first_;
};

/// The part of an item that a block has: tiles `begin` to `end` - 1 of it.
struct attention_segment {
  attention_item item;
  int begin = 0;
  int end = 0;

  [[nodiscard]] __device__ bool whole() const noexcept { return end - begin == item.tiles; }
};

/// Walks over the segments of a block.
template <int keys_of_tile>
class segment_walk {
 public:
  __device__ segment_walk(const attention_work<keys_of_tile>& work, int block)
      : work_(work), begin_(work.begin_of(block)), end_(work.begin_of(block + 1)) {
    segment_.item = work.find(begin_);
    if (begin_ - segment_.item.first >= segment_.item.tiles) {
      work.look_behind(segment_.item);
      work.advance(segment_.item);
    } else {
      work.look_behind(segment_.item);
    }
    if (valid()) cut();
  }
  /// False behind the last one, and at once for a block that has none.
  [[nodiscard]] __device__ bool valid() const noexcept { return segment_.item.first < end_; }
  [[nodiscard]] __device__ bool first() const noexcept { return segment_.item.first <= begin_; }
  [[nodiscard]] __device__ bool last() const noexcept {
    return attention_work<keys_of_tile>::behind(segment_.item) >= end_;
  }
  [[nodiscard]] __device__ const attention_segment& operator*() const noexcept { return segment_; }
  __device__ void advance() {
    work_.advance(segment_.item);
    if (valid()) cut();
  }

 private:
  __device__ void cut() {
    const attention_item& item = segment_.item;
    segment_.begin = max(begin_ - item.first, 0);
    segment_.end = min(end_ - item.first, item.tiles);
  }

  const attention_work<keys_of_tile>& work_;
  int begin_;
  int end_;
  attention_segment segment_;
};

}  // namespace untax::gpu
