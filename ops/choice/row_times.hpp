#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <untax/core/pattern.hpp>

#include "ops/choice/choose.hpp"

namespace untax {

/// The seconds of patterns, the likeliest first. Of two equal times, the first counts as the
/// quicker.
using pattern_times = std::vector<prediction::expected>;

/// The ends of a capacity to time, nine at most: places in `ends`, descending. They are the
/// capacity, three quarters and half of it, since PyTorch's operators have the next power of two of
/// a call's rows as capacity; and then each that has at most half of the rows of the one before.
[[nodiscard]] std::vector<std::size_t> ends_to_time(std::span<const std::int64_t> ends);

/// A number of rows halfway between the end before `at` and end `at`, which stands for all numbers
/// between. 0 if all of these take about as long as the end itself, for example if a tile has more
/// rows.
[[nodiscard]] std::int64_t rows_below(std::span<const std::int64_t> ends, std::size_t at);

/// The expected seconds of patterns at end `at`, the quickest first. They come from the ends that
/// were timed with their most rows: from `at` itself, or from the nearest timed ends above and
/// below, between which times are interpolated, relative to the times that `choices` expect if they
/// expect any. Below the lowest timed end, that end's times are used. Empty if no end above was
/// timed.
[[nodiscard]] pattern_times times_at(std::span<const std::int64_t> ends,
                                     const std::map<std::size_t, pattern_times>& timed,
                                     std::span<const choice> choices, std::size_t at);

}  // namespace untax
