#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>

namespace untax::sm90 {

/// Rows of 16-byte words that a warp moves with ordinary loads and stores: a few registers, so that
/// it can do so beside tensor cores. Nobody is synchronised.
class warp_copy {
 public:
  /// Rows begin at multiples of 16 bytes, and are multiples of 16 bytes long.
  __device__ static void move(std::uint16_t* to, std::int64_t to_stride, const std::uint16_t* from,
                              std::int64_t from_stride, std::int64_t rows, std::int64_t columns) {
    const auto words = static_cast<int>(columns / elements);
    const int total = static_cast<int>(rows) * words;
    auto* const target = reinterpret_cast<uint4*>(to);
    const auto* const source = reinterpret_cast<const uint4*>(from);
    const auto to_step = static_cast<std::int64_t>(to_stride / elements);
    const auto from_step = static_cast<std::int64_t>(from_stride / elements);
    cursor at{words, device_warp::thread_rank()};
#pragma unroll 1
    for (int i = device_warp::thread_rank(); i < total; i += 32 * at_once) {
      uint4 held[at_once];
      cursor reading = at;
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (i + 32 * k < total) held[k] = source[reading.row * from_step + reading.word];
        reading.advance();
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (i + 32 * k < total) target[at.row * to_step + at.word] = held[k];
        at.advance();
      }
    }
  }

 private:
  static constexpr int elements = 8;  // of a word
  static constexpr int at_once = 4;   // words of a thread that are on their way together

  /// A word in rows of them, and the one 32 words further on.
  struct cursor {
    int words;
    int rows_on;
    int words_on;
    int row;
    int word;

    __device__ cursor(int in_row, int first)
        : words(in_row),
          rows_on(32 / in_row),
          words_on(32 % in_row),
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
};

}  // namespace untax::sm90
