#include "bench/suites/tune.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "ops/common/registry.hpp"

namespace untax::bench {
namespace {

using size_pair = std::pair<std::int64_t, std::int64_t>;  // n and k

/// The sizes of a grid, in ascending m. If columns are sharded, n is that of all ranks.
struct grid_sizes {
  std::vector<std::int64_t> m;
  std::vector<size_pair> n_k;
};

grid_sizes sizes_of(const tuned_family& family, bool quick) {
  const operator_entry& entry = operator_named(family.operator_name);
  const bool of_all_ranks = entry.columns_sharded || entry.sums_to;  // n or k counts all ranks
  if (quick) {
    return {{16, 256, 2048, 16384},
            of_all_ranks ? std::vector<size_pair>{{4096, 4096}, {8192, 28672}}
                         : std::vector<size_pair>{{1536, 4096}, {7168, 8192}}};
  }
  std::vector<size_pair> n_k = {
      {1536, 4096}, {7168, 4096}, {3584, 8192}, {7168, 8192}, {14336, 8192}};
  if (of_all_ranks) n_k = {{4096, 4096}, {4096, 14336}, {8192, 8192}, {8192, 28672}};
  if (entry.columns_sharded) n_k.emplace_back(4608, 36864);
  return {{1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}, std::move(n_k)};
}

bool in_grid(const tuned_problem& p, const tuned_family& family) {
  for (const bool quick : {true, false}) {
    const auto grid = tuning_grid(family, p.ranks, quick);
    if (std::ranges::find(grid, p) != grid.end()) return true;
  }
  return false;
}

}  // namespace

std::vector<tuned_family> tuned_families(const std::string& operator_name) {
  std::vector<tuned_family> families;
  for (const operator_entry& entry : operators()) {
    if (!entry.on_gpus || (!operator_name.empty() && entry.name != operator_name)) continue;
    families.push_back({entry.name});
    if (entry.gathers) families.push_back({.operator_name = entry.name, .gather = gather_axis::k});
    if (entry.sums_to) families.push_back({.operator_name = entry.name, .partials = dtype::f32});
  }
  return families;
}

std::vector<tuned_problem> tuning_grid(const tuned_family& family, int ranks, bool quick) {
  const grid_sizes sizes = sizes_of(family, quick);
  std::vector<tuned_problem> grid;
  for (const auto& [n, k] : sizes.n_k) {
    for (const std::int64_t m : sizes.m)
      grid.push_back({family.operator_name, family.gather, ranks, m, n, k, family.partials});
  }
  return grid;
}

std::vector<tuned_problem> tuning_order(const std::vector<tuned_family>& families,
                                        const std::vector<int>& ranks, bool quick) {
  std::vector<tuned_problem> problems;
  for (const bool coarse : {true, false}) {
    if (quick && !coarse) continue;
    for (const int count : ranks) {
      for (const tuned_family& family : families) {
        for (const tuned_problem& p : tuning_grid(family, count, coarse)) {
          if (std::ranges::find(problems, p) == problems.end()) problems.push_back(p);
        }
      }
    }
  }
  return problems;
}

std::vector<tuned_problem> held_out_problems(const tuned_family& family, int ranks, int count) {
  const grid_sizes sizes = sizes_of(family, false);
  std::mt19937_64 random(1);
  // Not std distributions, whose results differ between standard libraries.
  const auto drawn = [&](std::int64_t least, std::int64_t most, std::int64_t step) {
    const double share = static_cast<double>(random() >> 11U) * 0x1p-53;
    const double ratio = static_cast<double>(most) / static_cast<double>(least);
    const double value = static_cast<double>(least) * std::pow(ratio, share);
    return std::max<std::int64_t>(std::llround(value / static_cast<double>(step)), 1) * step;
  };
  const auto [least_n, most_n] = std::ranges::minmax(sizes.n_k, {}, &size_pair::first);
  const auto [least_k, most_k] = std::ranges::minmax(sizes.n_k, {}, &size_pair::second);
  std::vector<tuned_problem> problems;
  while (std::ssize(problems) < count) {
    const std::int64_t m = drawn(sizes.m.front(), sizes.m.back(), 1);
    const std::int64_t n = drawn(least_n.first, most_n.first, 8);
    const std::int64_t k = drawn(least_k.second, most_k.second, 8);
    const tuned_problem p{family.operator_name, family.gather, ranks, m, n, k, family.partials};
    if (!in_grid(p, family)) problems.push_back(p);
  }
  return problems;
}

double tune_check::share() const noexcept {
  const auto good =
      std::ranges::count_if(rows, [](const auto& row) { return row.loss() <= most_loss; });
  return rows.empty() ? 0 : static_cast<double>(good) / static_cast<double>(rows.size());
}

tune_check check_choices(const tune_result& result) {
  tune_check check{result.table.device, result.table.library, {}};
  for (std::size_t i = 0; i < result.choices.size(); ++i) {
    const tuning_entry& entry = result.table.entries[i];
    const made_choice& now_chosen = result.choices[i];
    const auto chosen = entry.seconds.find(now_chosen.chosen);
    if (chosen == entry.seconds.end()) continue;
    const auto best = std::ranges::min_element(entry.seconds, {},
                                               [](const auto& element) { return element.second; });
    check.rows.push_back({entry.problem, now_chosen.chosen, best->first, chosen->second,
                          best->second, entry.seconds, now_chosen.reason});
  }
  return check;
}

}  // namespace untax::bench
