#pragma once

#include <cuda_runtime_api.h>

namespace untax::gpu {

/// A word in rows of them, and the one `step` words further on: what a thread goes through that
/// takes one of each `step` words.
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

}  // namespace untax::gpu
