#pragma once

#include <cstdint>

#include "engines/gpu/copy/block_share.hpp"
#include "engines/gpu/copy/word_cursor.cuh"

namespace untax::gpu {

/// Rows of elements of 2 bytes. They begin at multiples of 16 bytes, and are multiples of 16 bytes
/// long.
struct rows_of_block {
  const std::uint16_t* from = nullptr;
  std::int64_t from_stride = 0;
  std::int64_t to_stride = 0;
  int rows = 0;
  int columns = 0;
};

/// Rows that a block moves with ordinary loads and stores of its `copying_threads` threads. Reading
/// begins at once, so that the block can ask for leave to write meanwhile. Nobody is synchronised.
class block_copy {
 public:
  explicit __device__ block_copy(const rows_of_block& what)
      : source_(reinterpret_cast<const uint4*>(what.from)),
        from_step_(what.from_stride / elements),
        to_step_(what.to_stride / elements),
        total_(what.rows * (what.columns / elements)),
        first_(static_cast<int>(threadIdx.x)),
        // What lies without gaps on both sides is one row.
        at_(what.from_stride == what.columns && what.to_stride == what.columns
                ? total_
                : what.columns / elements,
            first_) {
    read();
  }

  /// Writes all of it to `copies` places: copy i lies at `place_of(i)`, an address of elements.
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
  static constexpr int elements = 8;  // of a word
  /// Words of a thread that are on their way together: 132 blocks have 4 MB under way then, many
  /// times what a link takes while one of them comes.
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
  int first_;         // of the words that are held
  cursor at_;         // where that lies
  cursor next_{at_};  // and the first one that is not held yet
  uint4 held_[at_once];
};

}  // namespace untax::gpu
