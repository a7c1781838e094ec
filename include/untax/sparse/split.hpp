#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <untax/core/host_device.hpp>

namespace untax::sparse {

/// The begin of part `part` of `parts` equal parts of `count` items, for any count that an int64_t
/// holds.
[[nodiscard]] constexpr std::int64_t begin_of_part(std::int64_t count, int part, int parts) {
  return count / parts * part + count % parts * part / parts;
}

/// The first row that begins at element `entry` or after it; `rows` if there is none.
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

/// A point of the merge path: the number of rows that have ended, and of elements that were taken.
struct path_point {
  std::int64_t rows = 0;
  std::int64_t entries = 0;

  bool operator==(const path_point&) const = default;
};

/// The point of the merge path after `steps` steps. The path merges the ends of rows with the
/// numbers of elements: a step takes an element of the current row or, if that has no more, ends
/// the row.
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
