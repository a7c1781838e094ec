#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <untax/core/pattern.hpp>

#include "ops/choice/choose.hpp"

namespace untax {

/// The seconds of patterns, the likeliest first: of two that take the same, the first is the
/// quicker.
using pattern_times = std::vector<prediction::expected>;

/// What was timed for one end of a capacity: runs of the most rows of its plan and, for some ends,
/// of the least.
struct timed_end {
  pattern_times most = {};
  pattern_times least = {};  ///< may be empty
  std::int64_t least_rows = 0;

  /// The geometric mean of both, of the patterns that have both; else `most`.
  [[nodiscard]] pattern_times mean() const;
};

/// The ends to time: the two largest, and then each that has at most a quarter of the rows of the
/// one before, six in all. Places in `ends`, descending.
[[nodiscard]] std::vector<std::size_t> ends_to_time(std::span<const std::int64_t> ends);

/// The patterns of end `at`, the quickest first, by those that were timed: itself, or the nearest
/// one above and the nearest one below, between which times are interpolated, over the times that
/// `choices` expect where they do. Below the lowest one its order serves. Empty if none above was
/// timed.
[[nodiscard]] std::vector<pattern> order_by_times(std::span<const std::int64_t> ends,
                                                  const std::map<std::size_t, timed_end>& timed,
                                                  std::span<const choice> choices, std::size_t at);

/// A part of a plan's rows.
struct part_of_rows {
  std::int64_t rows = 0;  ///< the most
  pattern how = pattern::bulk_library;
};
/// The patterns of a plan that was timed, by ascending rows: one, or two where the quickest of the
/// least rows and of the most differ, with the border where their interpolated times are equal.
[[nodiscard]] std::vector<part_of_rows> parts_of(const timed_end& timed, std::int64_t end);

}  // namespace untax
