#include "ops/choice/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "ops/choice/cost_model.hpp"

namespace untax {
namespace {

constexpr std::size_t most_lines = 4;

double log_ratio(std::int64_t a, std::int64_t b) {
  return std::log2(static_cast<double>(a) / static_cast<double>(b));
}

using logarithms = std::map<pattern, double>;

/// The logarithms of the times of an entry over those of the model.
logarithms of(const tuning_entry& entry, const cost_model& model) {
  logarithms result;
  for (const auto& [how, seconds] : entry.seconds)
    result[how] = std::log(seconds / model.seconds(how, entry.problem));
  return result;
}

/// Entries that differ in m only.
struct line {
  std::vector<const tuning_entry*> entries;  ///< by m
  std::vector<const tuning_entry*> used;     ///< the nearest entry first
  double distance = 0;                       ///< squared
  logarithms values;

  void settle(const tuned_problem& p, const cost_model& model) {
    std::ranges::sort(entries, {}, [](const tuning_entry* e) { return e->problem.m; });
    const auto above = std::ranges::lower_bound(entries, p.m, {},
                                                [](const tuning_entry* e) { return e->problem.m; });
    const tuning_entry* high = above == entries.end() ? entries.back() : *above;
    const tuning_entry* low = above == entries.begin() ? entries.front() : *(above - 1);
    if (high->problem.m == p.m) low = high;
    // If m is beyond the ends of a line, the line is further away.
    const double beyond = low == high ? log_ratio(p.m, low->problem.m) : 0;
    distance = std::pow(log_ratio(p.n, low->problem.n), 2) +
               std::pow(log_ratio(p.k, low->problem.k), 2) + beyond * beyond;
    values = of(*low, model);
    used = {low};
    if (low == high) return;
    const double share =
        log_ratio(p.m, low->problem.m) / log_ratio(high->problem.m, low->problem.m);
    const logarithms beside = of(*high, model);
    std::erase_if(values, [&](const auto& v) { return !beside.contains(v.first); });
    for (auto& [how, value] : values) value += share * (beside.at(how) - value);
    used.insert(share > 0.5 ? used.begin() : used.end(), high);
  }
};

std::vector<line> lines_of(const tuning_table& table, const tuned_problem& problem, int ranks,
                           const cost_model& model) {
  tuned_problem family = problem;
  family.ranks = ranks;
  std::map<std::pair<std::int64_t, std::int64_t>, line> by_size;
  for (const tuning_entry& entry : table.entries) {
    if (same_family(entry.problem, family))
      by_size[{entry.problem.n, entry.problem.k}].entries.push_back(&entry);
  }
  std::vector<line> lines;
  for (auto& [size, one] : by_size) {
    one.settle(problem, model);
    lines.push_back(std::move(one));
  }
  std::ranges::stable_sort(lines, {}, &line::distance);
  if (lines.size() > most_lines) lines.resize(most_lines);
  if (lines.empty()) return lines;
  const tuned_problem& nearest = lines[0].used[0]->problem;
  if (nearest.n == problem.n && nearest.k == problem.k) lines.resize(1);
  return lines;
}

}  // namespace

std::string text_of(const std::vector<prediction::expected>& times) {
  std::string text;
  for (const auto& [how, seconds] : times)
    text += fmt::format("{}{} {:.1f} us", text.empty() ? "" : ", ", name_of(how), 1e6 * seconds);
  return text;
}

bool nearer_ranks(int first, int other, int to) {
  const double away = std::abs(log_ratio(first, to));
  const double other_away = std::abs(log_ratio(other, to));
  return away < other_away || (away == other_away && first < other);
}

int nearest_ranks(const tuning_table& table, const tuned_problem& problem) {
  int best = 0;
  for (const tuning_entry& entry : table.entries) {
    tuned_problem same = problem;
    same.ranks = entry.problem.ranks;
    if (!same_family(entry.problem, same)) continue;
    if (best == 0 || nearer_ranks(entry.problem.ranks, best, problem.ranks))
      best = entry.problem.ranks;
  }
  return best;
}

prediction predict(const tuning_table& table, const tuned_problem& problem, int ranks) {
  prediction result;
  const cost_model model(table, problem, ranks);
  const std::vector<line> lines = lines_of(table, problem, ranks, model);
  if (lines.empty()) return result;
  for (const auto& [how, first] : lines[0].values) {
    double sum = 0;
    double weights = 0;
    for (const line& l : lines) {
      const auto value = l.values.find(how);
      if (value == l.values.end()) continue;
      const double weight = 1 / (l.distance + 1e-9);
      sum += weight * value->second;
      weights += weight;
    }
    result.times.push_back({how, model.seconds(how, problem) * std::exp(sum / weights)});
  }
  std::ranges::stable_sort(result.times, {}, &prediction::expected::seconds);
  for (const line& l : lines) result.from.insert(result.from.end(), l.used.begin(), l.used.end());
  result.exact = result.from.front()->problem == problem;
  return result;
}

}  // namespace untax
