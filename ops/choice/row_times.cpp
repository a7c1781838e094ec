#include "ops/choice/row_times.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

namespace untax {
namespace {

constexpr std::size_t most_timed = 9;
/// The parts of the capacity that are timed.
constexpr double upper_parts[] = {1, 0.75, 0.5};
constexpr std::int64_t step_down = 2;
constexpr std::int64_t least_rows_of_tiles = 160;

pattern_times sorted(pattern_times times) {
  std::ranges::stable_sort(times, {}, &prediction::expected::seconds);
  return times;
}

/// The seconds of a pattern; nothing if it was not timed.
std::optional<double> seconds_of(const pattern_times& times, pattern how) {
  const auto time = std::ranges::find(times, how, &prediction::expected::how);
  if (time == times.end()) return std::nullopt;
  return time->seconds;
}

double log_of(std::int64_t rows) { return std::log(static_cast<double>(rows)); }

}  // namespace

std::vector<std::size_t> ends_to_time(std::span<const std::int64_t> ends) {
  std::vector<std::size_t> places;
  for (std::size_t i = ends.size(); i-- > 0 && places.size() < most_timed;) {
    const std::size_t timed = places.size();
    const bool is_next =
        timed < std::size(upper_parts)
            ? static_cast<double>(ends[i]) <= upper_parts[timed] * static_cast<double>(ends.back())
            : ends[i] * step_down <= ends[places.back()];
    if (is_next) places.push_back(i);
  }
  return places;
}

std::int64_t rows_below(std::span<const std::int64_t> ends, std::size_t at) {
  if (at == 0 || ends[at] < least_rows_of_tiles) return 0;
  const std::int64_t halfway = (ends[at - 1] + ends[at]) / 2;
  return halfway > ends[at - 1] ? halfway : 0;
}

pattern_times times_at(std::span<const std::int64_t> ends,
                       const std::map<std::size_t, pattern_times>& timed,
                       std::span<const choice> choices, std::size_t at) {
  const auto above = timed.lower_bound(at);
  if (above == timed.end()) return {};
  if (above->first == at || above == timed.begin()) return sorted(above->second);
  const auto below = std::prev(above);
  const double share = (log_of(ends[at]) - log_of(ends[below->first])) /
                       (log_of(ends[above->first]) - log_of(ends[below->first]));
  pattern_times between;
  for (const auto& [how, seconds] : below->second) {
    const auto other = seconds_of(above->second, how);
    if (!other) continue;
    const auto predicted = seconds_of(choices[at].times, how);
    const auto low = seconds_of(choices[below->first].times, how);
    const auto top = seconds_of(choices[above->first].times, how);
    const bool known = predicted && low && top;
    const double of_low = std::log(known ? seconds / *low : seconds);
    const double of_top = std::log(known ? *other / *top : *other);
    between.push_back(
        {how, (known ? *predicted : 1) * std::exp(of_low + share * (of_top - of_low))});
  }
  return between.empty() ? sorted(above->second) : sorted(between);
}

}  // namespace untax
