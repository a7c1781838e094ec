#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/arguments.hpp"
#include "engines/gpu/attention/config.cuh"
#include "engines/gpu/attention/work.cuh"
#include "engines/gpu/sm90/ptx/async_copy.cuh"

namespace untax::gpu {

/// Loads the tiles of one warp into shared memory, in the order in which the warp consumes them,
/// across segment boundaries.
///
/// A stage holds rows of some keys, then the rows of their values. The index of a 16-byte unit in
/// its row is XORed with the row number modulo 8, so that matrices are read without bank conflicts.
/// Rows past the end of a sequence are zeros, whatever the KV cache holds. Kernels without pages
/// are compiled separately, since they need fewer registers.
template <int width, bool paged, bool fixed_parts>
class tile_producer {
  using config = attention_config<width>;
  using walk = segment_walk<config::keys, fixed_parts>;

 public:
  __device__ tile_producer(const attention_arguments& a, const walk& segments, int warp,
                           bool evicts_first)
      : keys_(a.memory.keys, a.memory.keys_stride),
        values_(a.memory.values, a.memory.values_stride),
        table_(a.memory.page_table),
        capacity_(a.shape.keys),
        pages_(a.shape.pages),
        page_size_(static_cast<unsigned>(a.shape.page_size)),
        by_page_(a.shape.by_page),
        policy_(evicts_first ? read_once() : read_as_usual()),
        batch_(a.shape.batch),
        walk_(segments),
        warp_(warp) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    row_ = lane / pieces;
    piece_ = lane % pieces;
    tile_ = walk_.first_tile(warp_, config::streaming);
    settle();
  }

  /// Issues the loads of the next tile into `stage`, if there is one. All lanes must call this.
  __device__ void load(std::uint32_t stage) {
    if (!walk_.valid()) return;
    const attention_item& item = (*walk_).item;
    const int first = (fixed_parts ? item.key : 0) + tile_ * config::keys + row_;
    const int column = item.head * width + piece_ * 8;
    if constexpr (paged) {
      load_pages(item, first, column, stage);
    } else {
      load_stage(item, first, column, stage);
    }
    tile_ += config::streaming;
    settle();
  }

 private:
  static constexpr int pieces = config::row_bytes / 16;  // 16-byte units per row
  static constexpr int rows_at_once = 32 / pieces;       // loaded by a warp
  static constexpr int turns = config::keys / rows_at_once;
  static constexpr int at_once = turns < 8 ? turns : 8;

  /// Rows of 2-byte elements.
  struct rows {
    const std::byte* data;
    std::int64_t stride;  // bytes

    __device__ rows(const void* first, std::int64_t elements)
        : data(static_cast<const std::byte*>(first)), stride(2 * elements) {}
    [[nodiscard]] __device__ const std::byte* at(std::int64_t row, int column) const {
      return data + row * stride + 2 * column;
    }
  };

  __device__ void settle() {
    while (walk_.valid() && tile_ >= (*walk_).end) {
      walk_.advance();
      tile_ = walk_.first_tile(warp_, config::streaming);
    }
  }

  [[nodiscard]] __device__ std::uint32_t place(std::uint32_t stage, int turn) const {
    const int row = turn * rows_at_once + row_;
    return stage +
           static_cast<std::uint32_t>(row * config::row_bytes + ((piece_ ^ (row & 7)) << 4));
  }

  /// Wide heads use no cache policy: ptxas 13.0 generates invalid instructions for it there.
  __device__ void copy(std::uint32_t to, const std::byte* from, bool there) const {
    if constexpr (width < 256) {
      copy_16_bytes(to, from, there, policy_);
    } else {
      copy_16_bytes(to, from, there);
    }
  }

  [[nodiscard]] __device__ int sequence_of(const attention_item& item) const {
    return fixed_parts ? item.sequence % batch_ : item.sequence;
  }
  /// The key of its sequence behind the last one of an item.
  [[nodiscard]] __device__ static int end_of(const attention_item& item) {
    return (fixed_parts ? item.key : 0) + item.length;
  }

  __device__ void load_stage(const attention_item& item, int first, int column,
                             std::uint32_t stage) const {
    const int end = end_of(item);
    const std::int64_t row = sequence_of(item) * capacity_ + first;
    const std::byte* key = keys_.at(row, column);
    const std::byte* value = values_.at(row, column);
#pragma unroll at_once
    for (int i = 0; i < turns; ++i) {
      const bool there = first + i * rows_at_once < end;
      const std::uint32_t at = place(stage, i);
      copy(at, key, there);
      copy(at + config::keys * config::row_bytes, value, there);
      key += rows_at_once * keys_.stride;
      value += rows_at_once * values_.stride;
    }
  }

  __device__ void load_pages(const attention_item& item, int first, int column,
                             std::uint32_t stage) const {
    const int end = end_of(item);
    const std::int32_t* const table = table_ + sequence_of(item) * pages_;
    // Wide heads load in parts, since all page numbers at once would not fit into registers.
#pragma unroll 1
    for (int begin = 0; begin < turns; begin += at_once) {
      std::int32_t page[at_once];
      unsigned inside[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const auto key = static_cast<unsigned>(first + (begin + i) * rows_at_once);
        const bool there = key < static_cast<unsigned>(end);
        const int number = there ? by_page_.quotient(static_cast<int>(key)) : 0;
        inside[i] = key - static_cast<unsigned>(number) * page_size_;
        // No __ldg: the kernel ahead may have written the table after this grid began.
        page[i] = there ? table[number] : 0;
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const bool there = first + (begin + i) * rows_at_once < end;
        const std::int64_t row =
            static_cast<std::int64_t>(page[i]) * page_size_ + (there ? inside[i] : 0);
        const std::uint32_t at = place(stage, begin + i);
        copy(at, keys_.at(row, column), there);
        copy(at + config::keys * config::row_bytes, values_.at(row, column), there);
      }
    }
  }

  // Copies of the arguments: the compiler would reload the originals from memory after every
  // instruction that may write memory.
  rows keys_;
  rows values_;
  const std::int32_t* table_;
  std::int64_t capacity_;
  std::int64_t pages_;
  unsigned page_size_;
  order::divider by_page_;
  std::uint64_t policy_;
  int batch_;
  walk walk_;
  int warp_;
  int row_;
  int piece_;
  int tile_;
};

}  // namespace untax::gpu
