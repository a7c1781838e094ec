#include "bench/choosers/ways.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <untax/select/training.hpp>

#include "bench/choosers/lessons.hpp"

namespace untax::bench {

namespace {

using tables = std::vector<tuning_table>;

chooser interpolated(const tables& from) {
  return [from](const tuning_entry& at) {
    const auto times = expected_times(from, at.problem);
    return times.empty() ? pattern::bulk_library : times.front().first;
  };
}

chooser tree_over(lesson_kind kind, tables from) {
  struct learned {
    tables from;
    lessons all;
    select::selector tree;
    learned(lesson_kind kind, tables t)
        : from(std::move(t)), all(kind, from), tree(select::train(all.all())) {}
  };
  const auto result = std::make_shared<const learned>(kind, std::move(from));
  return [result](const tuning_entry& at) {
    const int chosen = result->tree.by_known(result->all.features(at.problem), 1);
    return lessons::candidates()[static_cast<std::size_t>(chosen)];
  };
}

chooser tree_for_each_family(const tables& from) {
  using family = std::pair<std::string, gather_axis>;
  std::map<family, tables> parts;
  for (const tuning_table& table : from) {
    std::map<family, tuning_table> split;
    for (const tuning_entry& entry : table.entries) {
      auto& part = split[{entry.problem.operator_name, entry.problem.gather}];
      part.rates = table.rates;
      part.entries.push_back(entry);
    }
    for (auto& [name, part] : split) parts[name].push_back(std::move(part));
  }
  std::map<family, chooser> trees;
  for (auto& [name, part] : parts) trees[name] = tree_over(lesson_kind::sizes, std::move(part));
  return [trees](const tuning_entry& at) {
    return trees.at({at.problem.operator_name, at.problem.gather})(at);
  };
}

chooser best_single(const tables& from) {
  std::map<pattern, double> lost;
  for (const tuning_table& table : from) {
    for (const tuning_entry& entry : table.entries) {
      for (const auto& [how, seconds] : entry.seconds) lost[how] += std::log(seconds);
    }
  }
  const pattern best =
      std::ranges::min_element(lost, {}, [](const auto& element) { return element.second; })->first;
  return [best](const tuning_entry&) { return best; };
}

bool fused(pattern how) { return how != pattern::bulk_library && how != pattern::bulk_synchronous; }

pattern quickest_fused(const tuning_entry& at) {
  pattern best = pattern::bulk_library;
  double least = 0;
  for (const auto& [how, seconds] : at.seconds) {
    if (!fused(how) || (best != pattern::bulk_library && seconds >= least)) continue;
    best = how;
    least = seconds;
  }
  return best;
}

}  // namespace

std::vector<way> all_ways() {
  return {
      {"interpolation", interpolated},
      {"one tree", [](const tables& from) { return tree_over(lesson_kind::sizes, from); }},
      {"a tree a family", tree_for_each_family},
      {"tree over expected times",
       [](const tables& from) { return tree_over(lesson_kind::expected, from); }},
      {"best single pattern", best_single},
      {"async TP, quickest fused pattern",
       [](const tables&) {
         return [](const tuning_entry& at) {
           return async_tp_fuses(at.problem) ? quickest_fused(at) : pattern::bulk_library;
         };
       },
       true},
      {"async TP, copy_engine",
       [](const tables&) {
         return [](const tuning_entry& at) {
           return async_tp_fuses(at.problem) ? pattern::copy_engine : pattern::bulk_library;
         };
       },
       true},
  };
}

namespace {

constexpr std::int64_t small_result = 2'457'600;  // elements
constexpr std::int64_t small_input = 24'903'680;  // elements

}  // namespace

bool async_tp_fuses(const tuned_problem& p) noexcept {
  if (p.m * p.n <= small_result) return p.k <= 9'600 || p.n > 34'816;
  if (p.m * p.k <= small_input) return p.n > 6'144 && p.m <= 3'072;
  return p.n <= 40'960 || p.m > 12'288;
}

}  // namespace untax::bench
