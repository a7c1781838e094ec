#include "bench/suites/norm.hpp"

#include <algorithm>

namespace untax::bench {

double norm_row::seconds_of(const std::string& by) const noexcept {
  const auto figure = std::ranges::find(figures, by, &pattern_figure::by);
  return figure != figures.end() && figure->time ? figure->time->median : 0;
}

double norm_row::sum_seconds() const noexcept {
  const double rooms = seconds_of(sum_alone);
  const double direct = seconds_of(direct_sum_alone);
  return rooms > 0 && direct > 0 ? std::min(rooms, direct) : std::max(rooms, direct);
}

std::vector<overlap_bar> norm_report::bars() const {
  double most_over_sum = 0;
  double least_gain = 0;
  bool any = false;
  for (const norm_row& row : rows) {
    const double time = row.seconds_of(norm_fused);
    const double in_graph = row.seconds_of(library_graph);
    if (time <= 0 || in_graph <= 0) continue;
    least_gain = any ? std::min(least_gain, in_graph / time) : in_graph / time;
    any = true;
    if (row.tokens <= few_tokens && row.sum_seconds() > 0)
      most_over_sum = std::max(most_over_sum, time - row.sum_seconds());
  }
  if (!any) return {};
  return {{std::string(norm_fused) + " less all_reduce up to 128 tokens, us, most",
           1e6 * most_over_sum, 1, true},
          {"bulk_library graph / time, least", least_gain, 1, false}};
}

std::size_t heap_for(const norm_suite_options& options, int ranks) noexcept {
  const std::size_t of_element = 20 + 10 * static_cast<std::size_t>(ranks);
  const std::int64_t most = std::ranges::max(options.tokens) * std::ranges::max(options.hidden);
  return static_cast<std::size_t>(most) * of_element + (std::size_t{1} << 30U);
}

bool norm_report::met() const {
  for (const norm_row& row : rows) {
    for (const pattern_figure& f : row.figures) {
      if (f.time && !(f.error <= norm_tolerance)) return false;
    }
  }
  return std::ranges::all_of(bars(), &overlap_bar::met);
}

}  // namespace untax::bench
