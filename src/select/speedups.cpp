#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/select/evaluation.hpp>

namespace untax::select {
namespace {

/// The least cost of the candidates whose names begin with `group`; infinity if none ran.
double least_of(std::string_view group, const table& records, std::size_t record,
                double iterations) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < records.what.candidates.size(); ++c) {
    if (!records.what.candidates[c].name.starts_with(group)) continue;
    const double cost = records.cost(record, c, iterations);
    if (!std::isnan(cost)) least = std::min(least, cost);
  }
  return least;
}

}  // namespace

std::vector<speedup> speedups_over(std::string_view group, const judgement& judged,
                                   const table& records) {
  if (std::ranges::none_of(records.what.candidates,
                           [&](const auto& entry) { return entry.name.starts_with(group); })) {
    throw error(errc::invalid_argument,
                fmt::format("no candidate's name begins with {}; the first one is {}", group,
                            records.what.candidates.front().name));
  }
  std::vector<speedup> speedups;
  for (const evaluation& way : judged.ways) {
    if (way.way != "selector") continue;
    speedup gain{
        std::string(group), way.iterations, 0, std::numeric_limits<double>::infinity(), {}, 0};
    for (std::size_t i = 0; i < records.records(); ++i) {
      const double theirs = least_of(group, records, i, way.iterations);
      if (std::isinf(theirs)) continue;
      const double faster = theirs / (way.ratios[i] * least_of("", records, i, way.iterations));
      gain.mean += std::log(faster);
      ++gain.records;
      if (faster >= gain.least) continue;
      gain.least = faster;
      gain.lowest = records.labels[i];
    }
    gain.mean = gain.records == 0 ? 0 : std::exp(gain.mean / static_cast<double>(gain.records));
    speedups.push_back(gain);
  }
  return speedups;
}

}  // namespace untax::select
