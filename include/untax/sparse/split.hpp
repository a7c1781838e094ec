#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <untax/core/host_device.hpp>

namespace untax::sparse {

/// Where part number `part` of `parts` equal ones begins, of `count` things: for any count that an
/// int64_t holds.
[[nodiscard]] constexpr std::int64_t begin_of_part(std::int64_t count, int part, int parts) {
  return count / parts * part + count % parts * part / parts;
}

/// The first row that begins at element `entry` or behind it; the number of rows if none does.
template <class Offset>
[[nodiscard]] UNTAX_HOST_DEVICE std::int64_t first_row_from(const Offset* offsets,
                                                            std::int64_t rows, std::int64_t entry) {
  std::int64_t low = 0;
  std::int64_t high = rows;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (static_cast<std::int64_t>(offsets[middle]) < entry) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
template <class Offset>
[[nodiscard]] std::int64_t first_row_from(std::span<const Offset> offsets, std::int64_t entry) {
  return first_row_from(offsets.data(), std::ssize(offsets) - 1, entry);
}

/// So many rows that have ended, and so many elements that were taken.
struct path_point {
  std::int64_t rows = 0;
  std::int64_t entries = 0;

  bool operator==(const path_point&) const = default;
};

/// Where the path that merges ends of rows with numbers of elements is after `steps` steps: a step
/// takes an element of the row that is open, or, where it has no more, ends that row.
template <class Offset>
[[nodiscard]] UNTAX_HOST_DEVICE path_point merge_path(const Offset* offsets, std::int64_t rows,
                                                      std::int64_t steps) {
  const auto entries = static_cast<std::int64_t>(offsets[rows]);
  std::int64_t low = steps > entries ? steps - entries : 0;
  std::int64_t high = rows < steps ? rows : steps;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    // Row `middle` has ended if its last element was taken before.
    if (static_cast<std::int64_t>(offsets[middle + 1]) <= steps - middle - 1) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {low, steps - low};
}
template <class Offset>
[[nodiscard]] path_point merge_path(std::span<const Offset> offsets, std::int64_t steps) {
  return merge_path(offsets.data(), std::ssize(offsets) - 1, steps);
}

}  // namespace untax::sparse
