#pragma once

#include <cstdint>

#include "engines/gpu/attention/arguments.hpp"
#include "engines/gpu/channel/mutant.hpp"

namespace untax::gpu {

/// An item, and its position in the list of all tiles of a rank: items are ordered by head, then by
/// sequence. So distant blocks read the same keys at the same time, each for its own head, and
/// heads that are adjacent in memory are read together. A sequence of which the rank holds no keys
/// still has one tile, so that a block stores its empty result. After each item the list has
/// `end_tiles` empty places, which stand for the cost of finishing the item to a block.
///
/// In fixed parts, `sequence` counts parts of sequences: part p of sequence b is p * batch + b.
struct attention_item {
  int sequence = 0;
  int head = 0;
  int length = 0;
  int tiles = 0;
  int first = 0;  ///< list position of its first tile
  int key = 0;    ///< in fixed parts: its first key, in the sequence

  [[nodiscard]] __device__ int index(const attention_shape& shape) const noexcept {
    return sequence * shape.kv_heads + head;
  }
};

/// Assigns the tiles to blocks. Whatever the lengths, each block gets a contiguous range of the
/// same number of tiles, or one more, so all multiprocessors end together. If lengths are equal and
/// tiles few, blocks get whole items if that idles few blocks. Every warp computes this itself.
///
/// `fixed_parts`: sequences are in `attention_shape::parts` parts of about as many keys, which
/// follow from the length alone, and a block gets the items that begin in its range, all of each.
template <int keys_of_tile, bool fixed_parts = false>
class attention_work {
 public:
  /// Tiles per block, at least: a block with fewer saves less than combining its partial costs.
  static constexpr int least_tiles = 8;
  /// With more tiles per block, idle blocks cost more than combining (measured on an H200).
  static constexpr int most_tiles_of_whole_items = 600;
  /// The number of sequences whose lengths a warp keeps in registers.
  static constexpr int most_kept = 128;

  /// The lengths that a lane keeps.
  struct lane_lengths {
    int of[most_kept / 32];  ///< of sequences `lane`, 32 + `lane`, ...; 0 if there is none
  };
  /// Whether the lengths of all sequences are kept.
  [[nodiscard]] __device__ static bool keeps_all(const attention_shape& shape) noexcept {
    return sequences_of(shape) <= most_kept;
  }
  /// Loads the current lengths that the lane keeps. The loads bypass L1, which may hold values from
  /// before the preceding kernels ended.
  [[nodiscard]] __device__ static lane_lengths read(const attention_arguments& a) {
    lane_lengths now;
#pragma unroll
    for (int i = 0; i < groups_kept; ++i) {
      const int sequence = 32 * i + lane();
      now.of[i] = sequence < sequences_of(a.shape)
                      ? __ldcg(a.memory.lengths + in_batch(a.shape, sequence))
                      : 0;
    }
    return now;
  }

  /// All lanes of the warp must call this, each with the lengths that it has read.
  __device__ attention_work(const attention_arguments& a, const lane_lengths& lengths)
      : shape_(a.shape), lengths_(a.memory.lengths), kept_(lengths) {
    int tiles = 0;
    bool equal = true;
    const int first = __shfl_sync(everybody, keys_of(kept_.of[0], 0).count, 0);
    const auto count = [&](int length) {
      tiles += room_of(tiles_of(length));
      equal = equal && length == first;
    };
#pragma unroll
    for (int i = 0; i < groups_kept; ++i) {
      const int sequence = 32 * i + lane();
      if (sequence < sequences()) count(keys_of(kept_.of[i], sequence).count);
    }
    for (int b = most_kept + lane(); b < sequences(); b += 32) count(read_keys_of(b).count);
    of_head_ = __reduce_add_sync(everybody, tiles);
    cut(a.split, __all_sync(everybody, equal));
  }

  /// Whether the kept lengths equal `now`. All lanes of the warp must call this.
  [[nodiscard]] __device__ bool kept(const lane_lengths& now) const {
    if (left_out(mutant::attend_lengths)) return true;
    bool same = true;
#pragma unroll
    for (int i = 0; i < groups_kept; ++i) same = same && kept_.of[i] == now.of[i];
    return __all_sync(everybody, same);
  }

  /// The tiles of all items, with the empty places behind each.
  [[nodiscard]] __device__ int tiles() const noexcept { return of_head_ * shape_.kv_heads; }
  /// The number of blocks that get tiles.
  [[nodiscard]] __device__ int blocks() const noexcept { return blocks_; }
  /// The first tile of a block. The first `more_` blocks have one tile more.
  [[nodiscard]] __device__ int begin_of(int block) const noexcept {
    return block * each_ + (block < more_ ? block : more_);
  }
  /// The block that a tile is assigned to.
  [[nodiscard]] __device__ int block_of(int tile) const noexcept {
    const int behind = tile - more_ * (each_ + 1);
    const int from = behind < 0 ? tile : behind;
    const int size = behind < 0 ? each_ + 1 : each_;
    return (behind < 0 ? 0 : more_) +
           static_cast<int>(static_cast<unsigned>(from) / static_cast<unsigned>(size));
  }
  /// The item that a tile belongs to. All lanes of the warp must call this.
  [[nodiscard]] __device__ attention_item find(int tile) const {
    attention_item item;
    item.head = static_cast<int>(static_cast<unsigned>(tile) / static_cast<unsigned>(of_head_));
    int before = item.head * of_head_;
    for (int begin = 0;; begin += 32) {
      const span lanes = span_from(begin);
      const unsigned behind = __ballot_sync(everybody, before + lanes.up_to > tile);
      if (behind != 0 || begin + 32 >= sequences()) {
        const int at = __ffs(behind) - 1;
        item.sequence = begin + at;
        item.length = __shfl_sync(everybody, lanes.keys.count, at);
        if constexpr (fixed_parts) item.key = __shfl_sync(everybody, lanes.keys.first, at);
        item.tiles = tiles_of(item.length);
        item.first = before + __shfl_sync(everybody, lanes.up_to, at) - room_of(item.tiles);
        return item;
      }
      before += __shfl_sync(everybody, lanes.up_to, 31);
    }
  }
  /// The list position at which the next item begins.
  [[nodiscard]] __device__ static int behind(const attention_item& item) noexcept {
    return item.first + room_of(item.tiles);
  }
  /// Advances to the next item. All lanes of the warp must call this.
  __device__ void advance(attention_item& item) const {
    item.first = behind(item);
    item.sequence = sequence_behind(item);
    if (item.sequence == 0) ++item.head;
    const key_range keys = keys_at(item.sequence);
    item.length = keys.count;
    if constexpr (fixed_parts) item.key = keys.first;
    item.tiles = tiles_of(item.length);
  }
  /// The index of the item that follows `item`.
  [[nodiscard]] __device__ int index_behind(const attention_item& item) const noexcept {
    const int sequence = sequence_behind(item);
    return sequence * shape_.kv_heads + item.head + (sequence == 0 ? 1 : 0);
  }

  /// The sequence in the batch that a sequence of an item is, or is a part of.
  [[nodiscard]] __device__ static int in_batch(const attention_shape& shape,
                                               int sequence) noexcept {
    return fixed_parts ? sequence % shape.batch : sequence;
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;
  static constexpr int groups_kept = most_kept / 32;
  /// Keys of a sequence: all that the rank has, or those of a part.
  struct key_range {
    int first;
    int count;
  };
  [[nodiscard]] __device__ static int sequences_of(const attention_shape& shape) noexcept {
    return fixed_parts ? shape.parts * shape.batch : shape.batch;
  }
  [[nodiscard]] __device__ int sequences() const noexcept { return sequences_of(shape_); }
  [[nodiscard]] __device__ static int lane() noexcept { return static_cast<int>(threadIdx.x) % 32; }

  /// Decides how many blocks get tiles, and how many tiles each gets.
  __device__ void cut(const attention_split& split, bool equal) {
    const int total = tiles();
    const auto worth =
        static_cast<int>((static_cast<unsigned>(total) + least_tiles - 1) / least_tiles);
    if (worth < split.blocks) {
      blocks_ = worth;
      each_ = static_cast<int>(static_cast<unsigned>(total) / static_cast<unsigned>(worth));
    } else if (!fixed_parts && equal && total <= most_tiles_of_whole_items * split.blocks) {
      blocks_ = split.with_whole_items;
      each_ = split.by_whole.quotient(total);
    } else {
      blocks_ = split.blocks;
      each_ = split.by_blocks.quotient(total);
    }
    more_ = total - each_ * blocks_;
  }

  /// A lane's values for 32 sequences: the keys of the lane's sequence, and the inclusive prefix
  /// sum of list positions of one head up to that sequence.
  struct span {
    key_range keys;
    int up_to;
  };
  [[nodiscard]] __device__ span span_from(int begin) const {
    const bool there = begin + lane() < sequences();
    span mine;
    mine.keys = {0, 0};
    if (there) mine.keys = begin < most_kept ? kept_of(begin / 32) : read_keys_of(begin + lane());
    mine.up_to = there ? room_of(tiles_of(mine.keys.count)) : 0;
#pragma unroll
    for (int away = 1; away < 32; away *= 2) {
      const int other = __shfl_up_sync(everybody, mine.up_to, away);
      if (lane() >= away) mine.up_to += other;
    }
    return mine;
  }
  /// Selects by comparisons: an array that is indexed at run time would be in local memory.
  [[nodiscard]] __device__ key_range kept_of(int group) const {
    int length = kept_.of[0];
#pragma unroll
    for (int i = 1; i < groups_kept; ++i) length = i == group ? kept_.of[i] : length;
    return keys_of(length, 32 * group + lane());
  }

  [[nodiscard]] __device__ int sequence_behind(const attention_item& item) const noexcept {
    return item.sequence + 1 < sequences() ? item.sequence + 1 : 0;
  }
  [[nodiscard]] __device__ key_range keys_at(int sequence) const {
    if (sequence >= most_kept) return read_keys_of(sequence);
    key_range keys = kept_of(sequence / 32);
    keys.count = __shfl_sync(everybody, keys.count, sequence % 32);
    if constexpr (fixed_parts) keys.first = __shfl_sync(everybody, keys.first, sequence % 32);
    return keys;
  }
  /// The keys of a sequence, or of its part, of which the rank has `length`.
  [[nodiscard]] __device__ key_range keys_of(int length, int sequence) const {
    const int whole = possible(length);
    if constexpr (!fixed_parts) return {0, whole};
    const int each = (tiles_of(whole) + shape_.parts - 1) / shape_.parts * keys_of_tile;
    const int first = sequence / shape_.batch * each;
    return {first, min(max(whole - first, 0), each)};
  }
  /// Clamps an invalid length: it is too late to reject it, but reads must stay in the KV cache.
  [[nodiscard]] __device__ int possible(int length) const {
    return min(max(length, 0), static_cast<int>(shape_.keys));
  }
  [[nodiscard]] __device__ key_range read_keys_of(int sequence) const {
    return keys_of(__ldcg(lengths_ + in_batch(shape_, sequence)), sequence);
  }
  [[nodiscard]] __device__ static int tiles_of(int length) noexcept {
    return length == 0 ? 1 : (length - 1) / keys_of_tile + 1;
  }
  [[nodiscard]] __device__ static int room_of(int tiles) noexcept { return tiles + end_tiles; }

  const attention_shape& shape_;
  const std::int32_t* lengths_;
  int of_head_;  // list positions of one head, over all sequences
  int blocks_;
  int each_;
  int more_;
  lane_lengths kept_;
};

/// A block's part of an item: its tiles `begin` to `end` - 1.
struct attention_segment {
  attention_item item;
  int begin = 0;
  int end = 0;

  [[nodiscard]] __device__ bool whole() const noexcept { return end - begin == item.tiles; }
};

/// Walks over the segments of the calling block, if it has any.
template <int keys_of_tile, bool fixed_parts = false>
class segment_walk {
  using work = attention_work<keys_of_tile, fixed_parts>;

 public:
  __device__ explicit segment_walk(const work& list) : work_(list) {
    const int block = static_cast<int>(blockIdx.x);
    if (block >= list.blocks()) return;
    begin_ = list.begin_of(block);
    end_ = list.begin_of(block + 1);
    segment_.item = list.find(begin_);
    const int behind = begin_ - segment_.item.first;
    if (behind >= (fixed_parts ? 1 : segment_.item.tiles)) list.advance(segment_.item);
    if (valid()) cut();
  }
  /// False after the last segment, and from the start for a block without segments.
  [[nodiscard]] __device__ bool valid() const noexcept { return segment_.item.first < end_; }
  [[nodiscard]] __device__ bool first() const noexcept { return segment_.item.first <= begin_; }
  [[nodiscard]] __device__ bool last() const noexcept {
    return work::behind(segment_.item) >= end_;
  }
  [[nodiscard]] __device__ const attention_segment& operator*() const noexcept { return segment_; }
  /// The first tile of the segment for warp `number` of `warps`, a power of two. Tiles are assigned
  /// to warps round-robin, across segment boundaries, so that all warps get equally many. In fixed
  /// parts each segment begins with the first warp.
  [[nodiscard]] __device__ int first_tile(int number, int warps) const noexcept {
    return fixed_parts ? number : segment_.begin + ((number - before_) & (warps - 1));
  }
  __device__ void advance() {
    before_ += segment_.end - segment_.begin;
    work_.advance(segment_.item);
    if (valid()) cut();
  }

 private:
  __device__ void cut() {
    const attention_item& item = segment_.item;
    segment_.begin = fixed_parts ? 0 : max(begin_ - item.first, 0);
    segment_.end = fixed_parts ? item.tiles : min(end_ - item.first, item.tiles);
  }

  const work& work_;
  int begin_ = 0;
  int end_ = 0;
  int before_ = 0;  // tiles of the preceding segments
  attention_segment segment_;
};

}  // namespace untax::gpu
