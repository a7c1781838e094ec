#include "bench/suites/shared.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "ops/common/registry.hpp"

namespace untax::bench {

bool shared_report::right() const {
  return std::ranges::all_of(rows, [](const shared_row& row) {
    return std::ranges::all_of(
        row.figures, [&](const pattern_figure& f) { return !f.time || f.error <= row.tolerance; });
  });
}

trace_cost shared_report::cost_of_trace() const {
  std::vector<traced_ratio> ratios;
  for (const shared_row& row : rows) {
    for (const pattern_figure& f : row.figures) {
      if (!f.time || !f.traced_time) continue;
      ratios.push_back({fmt::format("{}, {}, {} ranks, {} x {} x {}", row.operator_name, f.by,
                                    row.ranks, row.problem.m, row.problem.n, row.problem.k),
                        f.traced_time->median / f.time->median});
    }
  }
  return cost_of(ratios);
}

int steps_of(const shared_options& options) {
  std::size_t steps = 0;
  for (const int ranks : options.rank_counts) {
    for (const std::string& name :
         options.operators.empty() ? default_operators(ranks) : options.operators)
      steps += problems_of(options, name, ranks).size();
  }
  return static_cast<int>(steps);
}

std::vector<std::string> default_operators(int ranks) {
  std::vector<std::string> names;
  for (const operator_entry& entry : operators()) {
    if (entry.on_gpus && entry.sums_to.has_value() == (ranks == 1)) names.push_back(entry.name);
  }
  return names;
}

std::vector<gemm_problem> problems_of(const shared_options& options,
                                      const std::string& operator_name, int ranks) {
  if (!options.sizes.empty()) return problems_of_sizes(options.sizes, options.partials);
  if (ranks == 1) return problems_of_sizes({16, 64, 1024, 4096}, options.partials);
  std::vector<gemm_problem> problems =
      shared_problems(operator_name, options.seed, options.problems);
  for (gemm_problem& p : problems) p.partials = options.partials;
  return problems;
}

std::vector<gemm_problem> problems_of_sizes(const std::vector<std::int64_t>& sizes,
                                            std::optional<dtype> partials) {
  std::vector<gemm_problem> problems;
  for (const std::int64_t m : sizes) {
    for (const std::int64_t k : {3584, 8192})
      problems.push_back({.m = m, .n = 8192, .k = k, .type = dtype::bf16, .partials = partials});
  }
  return problems;
}

std::vector<gemm_problem> shared_problems(const std::string& operator_name, std::uint64_t seed,
                                          int count) {
  const operator_entry& entry = operator_named(operator_name);
  std::mt19937_64 random(seed);
  const auto between = [&](double least, double most) {
    const double part = static_cast<double>(random() >> 11U) * 0x1p-53;
    return static_cast<std::int64_t>(std::llround(least * std::pow(most / least, part)));
  };
  std::vector<gemm_problem> problems;
  for (int i = 0; i < count; ++i) {
    gemm_problem p;
    p.m = between(64, 4096);
    p.n = 8 * between(64, 1024);
    p.k = 8 * between(64, 1024);
    p.type = random() % 2 == 0 ? dtype::bf16 : dtype::f16;
    if (entry.gathers) p.gather = random() % 2 == 0 ? gather_axis::rows : gather_axis::k;
    problems.push_back(p);
  }
  return problems;
}

}  // namespace untax::bench
