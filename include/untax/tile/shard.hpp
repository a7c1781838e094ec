#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/core/types.hpp>

namespace untax {

/// The smaller of two sizes. Kernels cannot call std::min.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t smaller(std::int64_t a,
                                                               std::int64_t b) noexcept {
  return b < a ? b : a;
}

/// A half-open interval of indices.
struct range {
  std::int64_t begin = 0;
  std::int64_t size = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t end() const noexcept {
    return begin + size;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool empty() const noexcept { return size == 0; }
};

/// The distribution of `extent` elements over `parts` owners in order: ceil(extent / parts) each,
/// rounded up to a multiple of `granularity`. The last ones have fewer, or none.
struct sharding {
  std::int64_t extent = 0;
  int parts = 1;
  std::int64_t granularity = 1;

  /// The size of a full shard.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t full() const noexcept {
    return round_up(ceil_div<std::int64_t>(extent, parts), granularity);
  }
  /// The elements of owner `part`.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range of(int part) const noexcept {
    const std::int64_t begin = smaller(extent, part * full());
    return {begin, smaller(extent, begin + full()) - begin};
  }
  /// The same sharding in smaller elements: `unit` of them make one element of this sharding.
  [[nodiscard]] constexpr sharding times(std::int64_t unit) const noexcept {
    return {extent * unit, parts, granularity * unit};
  }
};

/// A range divided into parts of `step` elements; the last one may be shorter.
struct pieces {
  range whole;
  std::int64_t step = 1;

  /// The number of parts.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int count() const noexcept {
    return static_cast<int>(ceil_div(whole.size, step));
  }
  /// The elements of part `i`.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range at(int i) const noexcept {
    const std::int64_t begin = whole.begin + i * step;
    return {begin, smaller(step, whole.end() - begin)};
  }
};

}  // namespace untax
