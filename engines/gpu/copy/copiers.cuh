#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <untax/rma/bulk_ring.cuh>
#include <untax/rma/device_group.cuh>

#include "engines/gpu/copy/block_share.hpp"

namespace untax::gpu {

/// The position, in rows of words, of a thread that copies every `step`-th word.
template <int step>
struct word_cursor {
  int words;
  int rows_on;
  int words_on;
  int row;
  int word;

  __device__ word_cursor(int in_row, int first)
      : words(in_row),
        rows_on(step / in_row),
        words_on(step % in_row),
        row(first / in_row),
        word(first % in_row) {}
  __device__ void advance() {
    word += words_on;
    row += rows_on;
    if (word >= words) {
      word -= words;
      ++row;
    }
  }
};

/// Copies rows of 16-byte words by one warp with ordinary loads and stores. It needs few registers,
/// so it can run beside the MMA warpgroups. It does not synchronise.
class warp_copy {
 public:
  /// Reads once and writes `copies` copies: copy i begins at `place_of(i)`, an address of 16-bit
  /// elements. Rows begin at multiples of 16 bytes, and are multiples of 16 bytes long.
  template <class PlaceOf>
  __device__ static void spread(int copies, const PlaceOf& place_of, std::int64_t to_stride,
                                const std::uint16_t* from, std::int64_t from_stride,
                                std::int64_t rows, std::int64_t columns) {
    // Rows without gaps on both sides are copied as one row.
    const bool dense = to_stride == columns && from_stride == columns;
    const auto total = static_cast<int>(rows * columns / elements);
    const int words = dense ? total : static_cast<int>(columns / elements);
    const auto* const source = reinterpret_cast<const uint4*>(from);
    const std::int64_t to_step = to_stride / elements;
    const std::int64_t from_step = from_stride / elements;
    word_cursor<32> at{words, device_warp::thread_rank()};
#pragma unroll 1
    for (int i = device_warp::thread_rank(); i < total; i += 32 * at_once) {
      uint4 held[at_once];
      word_cursor<32> next = at;
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (i + 32 * k < total) held[k] = source[next.row * from_step + next.word];
        next.advance();
      }
#pragma unroll 1
      for (int copy = 0; copy < copies; ++copy) {
        auto* const target = reinterpret_cast<uint4*>(place_of(copy));
        word_cursor<32> writing = at;
#pragma unroll
        for (int k = 0; k < at_once; ++k) {
          if (i + 32 * k < total) target[writing.row * to_step + writing.word] = held[k];
          writing.advance();
        }
      }
      at = next;
    }
  }

 private:
  static constexpr int elements = 8;  // per word
  /// Words in flight per thread: with 8, 132 warps at a latency of 1.2 us read 450 GB/s, more than
  /// the link carries.
  static constexpr int at_once = 8;
};

// Copiers: a warp copies rows of 2-byte elements to one or several destinations, copy i to
// `place_of(i)`. Rows begin at multiples of 16 bytes, and are multiples of 16 bytes long. After
// `complete` and a synchronisation of the warp, a release by any of its threads covers the copies.

/// Copies with ordinary loads and stores of the warp.
struct by_stores {
  template <class PlaceOf>
  __device__ static void move(int copies, const PlaceOf& place_of, std::int64_t to_stride,
                              const std::uint16_t* from, std::int64_t from_stride, int rows,
                              int columns) {
    warp_copy::spread(copies, place_of, to_stride, from, from_stride, rows, columns);
  }
  __device__ static void complete() {}
};

/// The first thread of the warp issues TMA copies.
template <class Ring>
struct by_bulk_copies {
  Ring& ring;

  template <class PlaceOf>
  __device__ void move(int copies, const PlaceOf& place_of, std::int64_t to_stride,
                       const std::uint16_t* from, std::int64_t from_stride, std::int64_t rows,
                       std::int64_t columns) const {
    if (device_warp::thread_rank() > 0) return;
    const bool dense = to_stride == columns && from_stride == columns;
    ring.post({nullptr, reinterpret_cast<const std::byte*>(from), to_stride * 2, from_stride * 2,
               dense ? 1 : rows, (dense ? rows : 1) * columns * 2},
              copies, [&](int copy) { return reinterpret_cast<std::byte*>(place_of(copy)); });
  }
  __device__ void complete() const {
    if (device_warp::thread_rank() == 0) ring.finish();
  }
};

/// Rows of 2-byte elements. They begin at multiples of 16 bytes, and are multiples of 16 bytes
/// long.
struct rows_of_block {
  const std::uint16_t* from = nullptr;
  std::int64_t from_stride = 0;
  std::int64_t to_stride = 0;
  int rows = 0;
  int columns = 0;
};

/// Copies rows with ordinary loads and stores by all `copying_threads` threads of a block. The
/// constructor issues the first loads, so that they overlap with the block's wait to reserve. It
/// does not synchronise.
class block_copy {
 public:
  explicit __device__ block_copy(const rows_of_block& what)
      : source_(reinterpret_cast<const uint4*>(what.from)),
        from_step_(what.from_stride / elements),
        to_step_(what.to_stride / elements),
        total_(what.rows * (what.columns / elements)),
        first_(static_cast<int>(threadIdx.x)),
        // Rows without gaps on both sides are copied as one row.
        at_(what.from_stride == what.columns && what.to_stride == what.columns
                ? total_
                : what.columns / elements,
            first_) {
    read();
  }

  /// Writes `copies` copies: copy i begins at `place_of(i)`, an address of 16-bit elements.
  template <class PlaceOf>
  __device__ void write(int copies, const PlaceOf& place_of) {
    while (true) {
#pragma unroll 1
      for (int copy = 0; copy < copies; ++copy)
        write_pending(reinterpret_cast<uint4*>(place_of(copy)));
      first_ += copying_threads * at_once;
      if (first_ >= total_) return;
      at_ = next_;
      read();
    }
  }

 private:
  static constexpr int elements = 8;  // per word
  /// Words in flight per thread: with 8, 132 blocks have 4 MB in flight, many times what a link
  /// carries within the latency of one.
  static constexpr int at_once = 8;
  using cursor = word_cursor<copying_threads>;

  __device__ void read() {
    next_ = at_;
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      if (is_there(k)) held_[k] = source_[next_.row * from_step_ + next_.word];
      next_.advance();
    }
  }
  __device__ void write_pending(uint4* target) const {
    cursor writing = at_;
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      if (is_there(k)) target[writing.row * to_step_ + writing.word] = held_[k];
      writing.advance();
    }
  }
  [[nodiscard]] __device__ bool is_there(int k) const {
    return first_ + copying_threads * k < total_;
  }

  const uint4* source_;
  std::int64_t from_step_;
  std::int64_t to_step_;
  int total_;
  int first_;         // first word that is held
  cursor at_;         // its position
  cursor next_{at_};  // position of the first word that is not loaded yet
  uint4 held_[at_once];
};

}  // namespace untax::gpu
