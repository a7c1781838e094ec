#pragma once

#include <cstdint>

#include "engines/sm90/attention/shape.hpp"

namespace untax::sm90 {

/// An item, and where it stands in the list of all tiles of a rank: items follow each other by
/// sequence, then by head. A sequence of which the rank holds nothing has one tile all the same, so
/// that somebody says so.
struct attention_item {
  int sequence = 0;
  int head = 0;
  int length = 0;
  int tiles = 0;
  int first = 0;  ///< its first tile, in the list

  [[nodiscard]] __device__ int index(const attention_shape& shape) const noexcept {
    return sequence * shape.kv_heads + head;
  }
};

/// How the tiles are dealt: each block gets the same number, or one more, one behind the other,
/// whatever the lengths, and so all multiprocessors end together. Every warp finds that out for
/// itself.
template <int keys_of_tile>
class attention_work {
 public:
  /// Below that many tiles a block is not worth what combining its part costs.
  static constexpr int least_tiles = 8;

  __device__ attention_work(const attention_shape& shape, const std::int32_t* lengths)
      : lengths_(lengths),
        batch_(shape.batch),
        kv_heads_(shape.kv_heads),
        most_(static_cast<int>(shape.keys)) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int mine = 0;
    for (int b = lane; b < batch_; b += 32) mine += tiles_of(length_of(b));
    for (int away = 16; away > 0; away /= 2) mine += __shfl_xor_sync(everybody, mine, away);
    const unsigned total = static_cast<unsigned>(mine * kv_heads_);
    const unsigned worth = (total + least_tiles - 1) / least_tiles;
    blocks_ = static_cast<int>(worth < gridDim.x ? worth : gridDim.x);
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
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int before = 0;
    for (int begin = 0;; begin += 32) {
      const int b = begin + lane;
      const int length = b < batch_ ? length_of(b) : 0;
      const int all = b < batch_ ? tiles_of(length) * kv_heads_ : 0;
      int up_to = all;
#pragma unroll
      for (int away = 1; away < 32; away *= 2) {
        const int other = __shfl_up_sync(everybody, up_to, away);
        if (lane >= away) up_to += other;
      }
      const unsigned behind = __ballot_sync(everybody, before + up_to > tile);
      if (behind != 0 || begin + 32 >= batch_) {
        const int at = __ffs(behind) - 1;
        attention_item item;
        item.sequence = begin + at;
        item.length = __shfl_sync(everybody, length, at);
        item.tiles = tiles_of(item.length);
        const int start = before + __shfl_sync(everybody, up_to - all, at);
        item.head = static_cast<int>(static_cast<unsigned>(tile - start) /
                                     static_cast<unsigned>(item.tiles));
        item.first = start + item.head * item.tiles;
        return item;
      }
      before += __shfl_sync(everybody, up_to, 31);
    }
  }
  __device__ void advance(attention_item& item) const {
    item.first += item.tiles;
    if (++item.head < kv_heads_) return;
    item.head = 0;
    if (++item.sequence >= batch_) return;
    item.length = length_of(item.sequence);
    item.tiles = tiles_of(item.length);
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  /// A length that cannot be is nobody's to refuse any more; it may not lead out of the cache.
  [[nodiscard]] __device__ int length_of(int sequence) const {
    const int length = __ldg(lengths_ + sequence);
    return min(max(length, 0), most_);
  }
  [[nodiscard]] __device__ static int tiles_of(int length) noexcept {
    return length == 0 ? 1 : (length + keys_of_tile - 1) / keys_of_tile;
  }

  const std::int32_t* lengths_;
  int batch_;
  int kv_heads_;
  int most_;
  int blocks_;
  int each_;
  int more_;
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
    cut();
  }
  /// False behind the last one.
  [[nodiscard]] __device__ bool valid() const noexcept { return segment_.item.first < end_; }
  [[nodiscard]] __device__ bool first() const noexcept { return segment_.item.first <= begin_; }
  [[nodiscard]] __device__ bool last() const noexcept {
    return segment_.item.first + segment_.item.tiles >= end_;
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

}  // namespace untax::sm90
