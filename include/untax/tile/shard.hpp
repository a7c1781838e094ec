#pragma once

#include <algorithm>
#include <cstdint>

#include <untax/core/types.hpp>

namespace untax {

/// A half-open interval of indices.
struct range {
  std::int64_t begin = 0;
  std::int64_t size = 0;

  [[nodiscard]] constexpr std::int64_t end() const noexcept { return begin + size; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size == 0; }
};

/// How `extent` elements are dealt to `parts` owners in order: ceil(extent / parts) each, the last
/// ones get less, or nothing.
struct sharding {
  std::int64_t extent = 0;
  int parts = 1;

  /// Size of a full shard.
  [[nodiscard]] constexpr std::int64_t full() const noexcept {
    return ceil_div<std::int64_t>(extent, parts);
  }
  [[nodiscard]] constexpr range of(int part) const noexcept {
    const std::int64_t begin = std::min(extent, part * full());
    return {begin, std::min(extent, begin + full()) - begin};
  }
};

/// A range cut into pieces of at most `step` elements.
struct pieces {
  range whole;
  std::int64_t step = 1;

  [[nodiscard]] constexpr int count() const noexcept {
    return static_cast<int>(ceil_div(whole.size, step));
  }
  [[nodiscard]] constexpr range at(int i) const noexcept {
    const std::int64_t begin = whole.begin + i * step;
    return {begin, std::min(step, whole.end() - begin)};
  }
};

}  // namespace untax
