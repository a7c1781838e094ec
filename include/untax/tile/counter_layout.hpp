#pragma once

#include <untax/core/host_device.hpp>

namespace untax {

/// The indices of a three-dimensional block of counters, row-major: [plane][row][col].
struct counter_block {
  int base = 0;
  int rows = 0;
  int cols = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int at(int plane, int row, int col = 0) const noexcept {
    return base + (plane * rows + row) * cols + col;
  }
};

/// Assigns counter indices to the blocks of a protocol, in the same order on every rank.
class counter_layout {
 public:
  /// The next planes * rows * cols indices.
  UNTAX_HOST_DEVICE constexpr counter_block take(int planes, int rows, int cols) noexcept {
    const counter_block block{size_, rows, cols};
    size_ += planes * rows * cols;
    return block;
  }
  /// The number of indices that were assigned.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const noexcept { return size_; }

 private:
  int size_ = 0;
};

}  // namespace untax
