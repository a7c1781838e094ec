#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace untax::sparse {

/// Where part number `part` of `parts` equal ones begins, of `count` things: for any count that an
/// int64_t holds.
[[nodiscard]] constexpr std::int64_t begin_of_part(std::int64_t count, int part, int parts) {
  return count / parts * part + count % parts * part / parts;
}

/// The first row that begins at element `entry` or behind it; the number of rows if none does.
template <class Offset>
[[nodiscard]] std::int64_t first_row_from(std::span<const Offset> offsets, std::int64_t entry) {
  const auto rows = offsets.first(offsets.size() - 1);
  const auto found = std::ranges::lower_bound(
      rows, entry, {}, [](Offset offset) { return static_cast<std::int64_t>(offset); });
  return found - rows.begin();
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
[[nodiscard]] path_point merge_path(std::span<const Offset> offsets, std::int64_t steps) {
  const std::int64_t rows = static_cast<std::int64_t>(offsets.size()) - 1;
  const auto entries = static_cast<std::int64_t>(offsets.back());
  std::int64_t low = std::max<std::int64_t>(0, steps - entries);
  std::int64_t high = std::min(rows, steps);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    // Row `middle` has ended if its last element was taken before.
    if (static_cast<std::int64_t>(offsets[static_cast<std::size_t>(middle) + 1]) <=
        steps - middle - 1) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {low, steps - low};
}

}  // namespace untax::sparse
