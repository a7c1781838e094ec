#include "ops/choice/row_times.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

namespace untax {
namespace {

constexpr std::size_t always_timed = 2;
constexpr std::size_t most_timed = 6;
constexpr std::int64_t step_down = 4;

std::vector<pattern> sorted(pattern_times times) {
  std::ranges::stable_sort(times, {}, &prediction::expected::seconds);
  std::vector<pattern> order;
  for (const auto& [how, seconds] : times) order.push_back(how);
  return order;
}

pattern quickest(const pattern_times& times) { return sorted(times).front(); }

/// Nothing if there is none of the pattern.
std::optional<double> seconds_of(const pattern_times& times, pattern how) {
  const auto time = std::ranges::find(times, how, &prediction::expected::how);
  if (time == times.end()) return std::nullopt;
  return time->seconds;
}

double log_of(std::int64_t rows) { return std::log(static_cast<double>(rows)); }

}  // namespace

pattern_times timed_end::mean() const {
  if (least.empty()) return most;
  pattern_times means;
  for (const auto& [how, seconds] : most) {
    if (const auto other = seconds_of(least, how))
      means.push_back({how, std::sqrt(seconds * *other)});
  }
  return means;
}

std::vector<std::size_t> ends_to_time(std::span<const std::int64_t> ends) {
  std::vector<std::size_t> places;
  for (std::size_t i = ends.size(); i-- > 0 && places.size() < most_timed;) {
    if (places.size() < always_timed || ends[i] * step_down <= ends[places.back()])
      places.push_back(i);
  }
  return places;
}

std::vector<pattern> order_by_times(std::span<const std::int64_t> ends,
                                    const std::map<std::size_t, timed_end>& timed,
                                    std::span<const choice> choices, std::size_t at) {
  const auto above = timed.lower_bound(at);
  if (above == timed.end()) return {};
  const pattern_times high = above->second.mean();
  if (above->first == at || above == timed.begin()) return sorted(high);
  const auto below = std::prev(above);
  const double share = (log_of(ends[at]) - log_of(ends[below->first])) /
                       (log_of(ends[above->first]) - log_of(ends[below->first]));
  pattern_times between;
  for (const auto& [how, seconds] : below->second.most) {
    const auto other = seconds_of(above->second.most, how);
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
  return between.empty() ? sorted(high) : sorted(between);
}

std::vector<part_of_rows> parts_of(const timed_end& timed, std::int64_t end) {
  const pattern last = quickest(timed.most);
  if (timed.least.empty()) return {{end, last}};
  const pattern first = quickest(timed.least);
  const auto first_of_most = seconds_of(timed.most, first);
  const auto last_of_least = seconds_of(timed.least, last);
  if (first == last || !first_of_most || !last_of_least) return {{end, last}};
  // How much longer the other one takes, at each side; both are at least 0.
  const double at_least = std::log(*last_of_least / *seconds_of(timed.least, first));
  const double at_most = std::log(*first_of_most / *seconds_of(timed.most, last));
  if (at_least + at_most <= 0) return {{end, last}};
  const auto span = static_cast<double>(end - timed.least_rows);
  const auto border =
      timed.least_rows + static_cast<std::int64_t>(span * at_least / (at_least + at_most));
  return {{std::min(border, end - 1), first}, {end, last}};
}

}  // namespace untax
