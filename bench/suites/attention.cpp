#include "bench/suites/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace untax::bench {
namespace {

/// The most bytes of keys and values of a problem; other data are small.
constexpr double most_bytes = 110e9;
/// From this size on, the local kernel has to read at the rate of the memory.
constexpr double large_bytes = 256e6;
constexpr std::int64_t short_keys = 32 << 10;

/// Bytes of keys and values of a random problem.
constexpr double least_random_bytes = 2e6;
constexpr double most_random_bytes = 2e9;

/// The geometric mean and the least of some ratios.
struct ratio_summary {
  double logarithms = 0;
  double least = std::numeric_limits<double>::infinity();
  int count = 0;

  void add(double numerator, double denominator) {
    if (numerator <= 0 || denominator <= 0) return;
    const double ratio = numerator / denominator;
    logarithms += std::log(ratio);
    least = std::min(least, ratio);
    ++count;
  }
  [[nodiscard]] double mean() const { return std::exp(logarithms / count); }
};

attention_row row_of(const std::string& name, std::int64_t batch, const attention_heads& heads,
                     std::int64_t keys, const attention_suite_options& options) {
  attention_row row;
  row.name = name;
  row.problem = {.batch = batch,
                 .heads = heads.heads,
                 .kv_heads = heads.kv_heads,
                 .head_dim = heads.head_dim,
                 .keys = round_up(keys, std::max<std::int64_t>(options.page_size, 1)),
                 .page_size = options.page_size,
                 .partials = options.partials};
  if (options.page_size > 0) row.problem.pages = batch * row.problem.keys / options.page_size;
  return row;
}

/// Heads of models; batches up to 256 and keys up to 256K, with equal probability for each interval
/// between powers of two.
std::vector<attention_row> random_problems(const attention_suite_options& options) {
  std::mt19937_64 random(options.seed);
  const auto pick = [&](const std::vector<std::int64_t>& from) {
    return from[random() % from.size()];
  };
  const auto about = [&](int least_power, int most_power) {
    const auto powers = static_cast<std::uint64_t>(most_power - least_power);
    const std::uint64_t power = std::uint64_t{1}
                                << (static_cast<unsigned>(least_power) + random() % powers);
    return static_cast<std::int64_t>(power + random() % power);
  };
  std::vector<attention_row> rows;
  while (static_cast<int>(rows.size()) < options.problems) {
    attention_heads heads{.name = "random"};
    heads.head_dim = pick({64, 128, 128, 128, 256});
    heads.kv_heads = pick({1, 2, 4, 8, 12, 16, 32});
    heads.heads = heads.kv_heads * pick({1, 2, 4, 5, 8, 12, 16});
    const std::int64_t batch = about(0, 8);
    const attention_row row = row_of(heads.name, batch, heads, about(8, 18), options);
    if (row.bytes() >= least_random_bytes && row.bytes() <= most_random_bytes) rows.push_back(row);
  }
  return rows;
}

}  // namespace

const std::vector<attention_heads>& known_attention_heads() {
  static const std::vector<attention_heads> shapes = {{"paper", 96, 12, 128},
                                                      {"70b", 64, 8, 128},
                                                      {"8b", 32, 8, 128},
                                                      {"mha", 32, 32, 128},
                                                      {"mha-64", 32, 32, 64}};
  return shapes;
}

double attention_row::bytes() const noexcept {
  return 2.0 * static_cast<double>(problem.batch * problem.keys) *
         static_cast<double>(problem.kv_heads * problem.head_dim) *
         static_cast<double>(size_of(problem.type));
}

double attention_row::seconds_of(const std::string& by) const noexcept {
  for (const attention_figure& f : figures) {
    if (f.by == by) return f.time.median;
  }
  return 0;
}

std::vector<attention_row> attention_problems(const attention_suite_options& options) {
  if (options.problems > 0) return random_problems(options);
  std::vector<attention_row> rows;
  for (const attention_heads& heads : options.heads) {
    for (const std::int64_t batch : options.batches) {
      for (const std::int64_t keys : options.keys) {
        const attention_row row = row_of(heads.name, batch, heads, keys, options);
        if (row.bytes() <= most_bytes) rows.push_back(row);
      }
    }
  }
  return rows;
}

std::vector<attention_bar> attention_report::bars() const {
  ratio_summary large;
  ratio_summary small;
  ratio_summary summary;
  double over_local = 0;
  double over_bound = 0;
  for (const attention_row& row : rows) {
    const double local = row.seconds_of("local");
    const double fused = row.seconds_of("fused_sequential");
    const double baseline = row.seconds_of("bulk_library");
    if (row.bytes() >= large_bytes) large.add(bound(row), local);
    if (row.problem.batch == 1 && row.problem.keys <= short_keys) small.add(baseline, fused);
    summary.add(baseline, fused);
    if (fused > 0) over_local = std::max(over_local, 1e6 * (fused - local));
    if (row.problem.batch == 1 && row.problem.keys == 8192)
      over_bound = std::max(over_bound, 1e6 * (local - bound(row)));
  }
  std::vector<attention_bar> bars;
  if (large.count > 0)
    bars.push_back(
        {"local kernel from 256 MB on, least part of the memory's rate", large.least, 0.88});
  if (over_bound > 0)
    bars.push_back(
        {"local kernel at batch 1 and 8192 keys, us over the bound", over_bound, 8, true});
  if (small.count > 0)
    bars.push_back({"bulk_library / fused at batch 1 up to 32K keys, mean", small.mean(), 1.5});
  if (summary.count > 0) {
    bars.push_back({"bulk_library / fused, mean of all", summary.mean(), 1.12});
    bars.push_back({"bulk_library / fused, least of all", summary.least, 1.0});
    bars.push_back(
        {"fused less the local kernel, us, most of all", over_local, ranks > 4 ? 6.0 : 5.0, true});
  }
  return bars;
}

}  // namespace untax::bench
