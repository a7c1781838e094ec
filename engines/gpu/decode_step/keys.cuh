#pragma once

#include <cstdint>

#include "engines/gpu/decode_step/block.cuh"

namespace untax::gpu {

/// A block's part of the keys of one sequence for one head, in spans of `stage_keys`.
struct key_item {
  int token;         ///< number of the sequence
  int head;          ///< of keys and values
  int length;        ///< keys of the sequence, with the token's own
  int first;         ///< first key that the token sees
  int span;          ///< first span of this block, counted from key 0
  int spans;         ///< of this block
  int parts;         ///< blocks that have spans of the item
  int number;        ///< of this block among them
  int part;          ///< where this block's part is in the workspace
  int first_part;    ///< where the first one is
  int second_part;   ///< where the second one is; the others follow, with one place between them
  std::int64_t own;  ///< row of the token's own key in the cache

  /// Where part `i` is in the workspace.
  [[nodiscard]] __device__ int place_of(int i) const {
    return i == 0 ? first_part : second_part + 2 * (i - 1);
  }
  /// Whether the token's own key is in this block's part.
  [[nodiscard]] __device__ bool has_own_key() const {
    return (span + spans) * step_shape::stage_keys >= length;
  }
};
static_assert(sizeof(key_item) == step_shape::item_bytes);

/// How blocks share the keys of all sequences: each has as many spans, one item after the other. So
/// an item's parts are in consecutive blocks, and a block has parts of two items at most. No more
/// blocks take part than have a span for each warp: their keys are in shared memory before the
/// queries are known, so more blocks would only leave more parts to merge. The host bounds the
/// keys, so that the products of 32 bits do.
class key_shares {
 public:
  /// `window`: keys that a token sees; 0: all.
  __device__ key_shares(const step_block& block, int window) : block_(block), window_(window) {
    for (int t = 0; t < block.shape().tokens; ++t) total_ += spans_of(t);
    total_ *= kv_heads();
    blocks_ = min(block.shape().blocks, (total_ + step_shape::warps - 1) / step_shape::warps);
  }

  /// Writes the items of a block, and returns their number.
  __device__ int list(int own, key_item* items) const {
    if (own >= blocks_) return 0;
    const int begin = begin_of(own);
    const int end = begin_of(own + 1);
    int count = 0;
    int at = 0;
    for (int t = 0; t < block_.shape().tokens && at < end; ++t) {
      const int spans = spans_of(t);
      for (int h = 0; h < kv_heads(); ++h, at += spans) {
        const int low = max(at, begin);
        const int high = min(at + spans, end);
        if (low < high) items[count++] = item(t, h, at, low, high - low, own);
      }
    }
    return count;
  }

 private:
  [[nodiscard]] __device__ int kv_heads() const { return block_.shape().kv_heads; }
  [[nodiscard]] __device__ int length_of(int t) const { return block_.numbers().lengths[t]; }
  [[nodiscard]] __device__ int first_of(int t) const {
    return window_ > 0 ? max(0, length_of(t) - window_) : 0;
  }
  [[nodiscard]] __device__ int spans_of(int t) const {
    const int length = length_of(t);
    if (length == 0) return 0;
    return (length - 1) / step_shape::stage_keys - first_of(t) / step_shape::stage_keys + 1;
  }
  [[nodiscard]] __device__ int begin_of(int block) const { return total_ * block / blocks_; }
  /// The block that has a span.
  [[nodiscard]] __device__ int block_of(int span) const {
    return ((span + 1) * blocks_ - 1) / total_;
  }
  [[nodiscard]] __device__ int place(int block, int at) const {
    return 2 * block + (begin_of(block) >= at ? 0 : 1);
  }
  /// `at`: number of the item's first span among those of all items; `low`: of this block's first.
  [[nodiscard]] __device__ key_item item(int t, int h, int at, int low, int spans, int own) const {
    const step_arguments& a = block_.a;
    const int position = length_of(t) - 1;
    const int page = a.page_table[std::int64_t{t} * a.sequence_pages + position / a.page_size];
    const int block = block_of(at);
    key_item k;
    k.token = t;
    k.head = h;
    k.length = position + 1;
    k.first = first_of(t);
    k.span = k.first / step_shape::stage_keys + low - at;
    k.spans = spans;
    k.parts = block_of(at + spans_of(t) - 1) - block + 1;
    k.number = own - block;
    k.part = place(own, at);
    k.first_part = place(block, at);
    k.second_part = 2 * (block + 1);
    k.own = std::int64_t{page} * a.page_size + position % a.page_size;
    return k;
  }

  const step_block& block_;
  int window_;
  int blocks_ = 1;
  int total_ = 0;
};

/// The items of a block in a layer.
struct key_list {
  const key_item* items;
  int count;

  /// `windowed`: 1 in a layer with a window.
  __device__ key_list(const step_block& block, int windowed)
      : items(block.items() + windowed * block.shape().item_capacity()),
        count(block.numbers().item_counts[windowed]) {}
};

}  // namespace untax::gpu
