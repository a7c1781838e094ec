#pragma once

#include <algorithm>
#include <cstdint>

#include <untax/core/types.hpp>

namespace untax::gpu {

/// Threads of a block that copies with ordinary loads and stores, of 16 bytes each.
inline constexpr int copying_threads = 256;

/// The part of a rectangle of 2-byte elements that each block copies: its rows and columns.
struct block_share {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  int count = 1;  ///< number of shares
};

/// Splits a rectangle into shares for at most `most` blocks. Each block costs a signal, so small
/// rectangles use few blocks: every thread has a word to copy, if there are enough words. Shares
/// begin at multiples of `unit` columns.
[[nodiscard]] inline block_share share_of_block(std::int64_t rows, std::int64_t columns, int most,
                                                std::int64_t unit) {
  constexpr std::int64_t least_bytes = copying_threads * 16;
  const std::int64_t wanted = std::clamp<std::int64_t>(rows * columns * 2 / least_bytes, 1, most);
  block_share share{1, columns, 1};
  if (wanted <= rows) {
    share.rows = ceil_div(rows, wanted);
  } else {
    share.columns = std::min(round_up(ceil_div(columns, wanted / rows), unit), columns);
  }
  share.count = static_cast<int>(ceil_div(rows, share.rows) * ceil_div(columns, share.columns));
  return share;
}

}  // namespace untax::gpu
