#include "bench/choosers/lessons.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "ops/choice/prediction.hpp"

namespace untax::bench {
namespace {

constexpr std::array patterns = {pattern::bulk_library,          pattern::bulk_synchronous,
                                 pattern::producer_consumer,     pattern::copy_engine,
                                 pattern::fused_sequential,      pattern::fused_specialized,
                                 pattern::fused_warp_specialized};
/// Multiprocessors of the device of the tables, which do not contain the number.
constexpr double multiprocessors = 132;
constexpr double tile = 128;
/// The expected relative time of a pattern for which the tables have no time.
constexpr double far_behind = 10;

const std::vector<const char*>& size_names() {
  static const std::vector<const char*> names = {
      "m",          "n",         "k",      "ranks",
      "scatters",   "by_k",      "result", "input",
      "weights",    "compute",   "link",   "link_rate",
      "link_share", "intensity", "tiles",  "per_multiprocessor"};
  return names;
}

std::vector<double> sizes_of(const tuned_problem& p, const device_rates& rates) {
  const bool scatters = p.columns_sharded();
  const double m = static_cast<double>(p.m);
  const double n = static_cast<double>(p.n) / (scatters ? p.ranks : 1);
  const double k = static_cast<double>(p.k);
  const device_bounds bounds = rates.bounds(p);
  const double tiles = std::ceil(m / tile) * std::ceil(n / tile);
  return {m,
          n,
          k,
          static_cast<double>(p.ranks),
          scatters ? 1.0 : 0.0,
          p.gather == gather_axis::k ? 1.0 : 0.0,
          m * n,
          m * k,
          n * k,
          1e6 * bounds.compute,
          1e6 * bounds.link,
          1e-9 * rates.link,
          bounds.link / bounds.compute,
          m * n * k / (m * n + m * k + n * k),
          tiles,
          tiles / multiprocessors};
}

}  // namespace

std::vector<tuning_table> without_shape(const std::vector<tuning_table>& tables,
                                        const tuned_problem& like) {
  std::vector<tuning_table> rest = tables;
  for (tuning_table& table : rest) {
    std::erase_if(table.entries, [&](const tuning_entry& e) {
      return e.problem.n == like.n && e.problem.k == like.k;
    });
  }
  std::erase_if(rest, [](const tuning_table& table) { return table.entries.empty(); });
  return rest;
}

std::vector<std::pair<pattern, double>> expected_times(const std::vector<tuning_table>& tables,
                                                       const tuned_problem& problem) {
  const tuning_table* nearest = nullptr;
  int ranks = 0;
  for (const tuning_table& table : tables) {
    const int has = nearest_ranks(table, problem);
    if (has == 0 || (ranks != 0 && !nearer_ranks(has, ranks, problem.ranks))) continue;
    nearest = &table;
    ranks = has;
  }
  std::vector<std::pair<pattern, double>> times;
  if (nearest == nullptr) return times;
  for (const auto& [how, seconds] : predict(*nearest, problem, ranks).times)
    times.emplace_back(how, seconds);
  return times;
}

std::span<const pattern> lessons::candidates() noexcept { return patterns; }

lessons::lessons(lesson_kind kind, const std::vector<tuning_table>& tables)
    : kind_(kind), tables_(tables) {
  const auto add = [this](const std::string& name) {
    what_.features.push_back({name, name, false, true});
  };
  for (const char* name : size_names()) add(name);
  for (const pattern how : patterns) {
    const std::string name(name_of(how));
    if (kind_ == lesson_kind::expected) add("expected_" + name);
    what_.candidates.push_back({name, name, "0", "", ""});
  }
}

std::vector<double> lessons::features(const tuned_problem& problem,
                                      const std::vector<tuning_table>& from) const {
  std::vector<double> values = sizes_of(problem, tables_.front().rates);
  if (kind_ == lesson_kind::sizes) return values;
  const auto times = expected_times(from, problem);
  for (const pattern how : patterns) {
    const auto match = std::ranges::find(times, how, [](const auto& t) { return t.first; });
    values.push_back(match == times.end() ? far_behind : match->second / times.front().second);
  }
  return values;
}

std::vector<double> lessons::features(const tuned_problem& problem) const {
  return features(problem, tables_);
}

select::table lessons::all() const {
  select::table result;
  result.what = what_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<tuning_table>> rests;
  for (const tuning_table& element : tables_) {
    for (const tuning_entry& entry : element.entries) {
      auto& rest = rests[{entry.problem.n, entry.problem.k}];
      if (rest.empty()) rest = without_shape(tables_, entry.problem);
      result.labels.push_back(family_text(entry.problem) + ", " + shape_text(entry.problem));
      result.features.add_row(features(entry.problem, rest));
      std::vector<double> seconds;
      for (const pattern how : patterns) {
        const auto match = entry.seconds.find(how);
        seconds.push_back(match == entry.seconds.end() ? std::numeric_limits<double>::quiet_NaN()
                                                       : match->second);
      }
      result.times.add_row(seconds);
    }
  }
  result.setups = select::grid(result.records(), patterns.size(), 0);
  result.allowed = select::grid(result.records(), patterns.size(), 1);
  result.gathering.assign(result.records(), 0);
  return result;
}

}  // namespace untax::bench
