#include "bench/suites/overlap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "bench/suites/public_kernels.hpp"
#include "ops/common/registry.hpp"

namespace untax::bench {
namespace {

/// Columns of one rank, and K, of the shapes that count for all bars except that of public kernels.
constexpr std::int64_t gathered_columns[] = {7168, 3584};
constexpr std::int64_t gathered_k = 8192;

/// Whether a shape is measured only to be compared with a public kernel.
bool beside_others(const public_kernel* others, const gemm_problem& p, int ranks) {
  const bool usual = p.k == gathered_k && std::ranges::count(gathered_columns, p.n) > 0;
  return !usual && others != nullptr && others->seconds(p, ranks) > 0;
}

/// Weights of a suite, and the numbers of rows that are multiplied by them.
struct suite_weights {
  std::int64_t n = 0;
  std::int64_t k = 0;
  gather_axis gather = gather_axis::rows;
  std::vector<std::int64_t> rows;

  [[nodiscard]] gemm_problem with_rows(std::int64_t m) const {
    return {.m = m, .n = n, .k = k, .type = dtype::bf16, .gather = gather};
  }
};

/// The weights of a suite. For an operator that gathers, n counts one rank's columns.
std::vector<suite_weights> weights_of(const operator_entry& entry, overlap_shapes shapes) {
  const bool decode = shapes == overlap_shapes::decode;
  std::vector<std::int64_t> rows = {1024, 2048, 4096, 8192, 16384};
  if (decode) rows = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  std::vector<suite_weights> suite;
  if (entry.columns_sharded) {
    constexpr std::int64_t sizes[][2] = {{4096, 12288}, {4096, 14336}, {3584, 14336},
                                         {4608, 36864}, {8192, 28672}, {8192, 30720}};
    for (const auto& [n, k] : sizes) {
      const std::vector<std::int64_t> many = {8192};
      suite.push_back({n, k, gather_axis::rows, decode ? rows : many});
    }
    return suite;
  }
  if (entry.sums_to) {
    // o and down of a model of 70 billion weights.
    for (const std::int64_t k : {8192, 28672}) suite.push_back({8192, k, gather_axis::rows, rows});
    return suite;
  }
  for (const std::int64_t n : gathered_columns) {
    suite.push_back({n, gathered_k, gather_axis::rows, rows});
    if (decode) suite.push_back({n, gathered_k, gather_axis::k, rows});
  }
  return suite;
}

/// The loss to the library that the noise of a measurement may explain.
constexpr double least_of_automatic = 0.98;

/// Collects ratios of a table.
class ratios {
 public:
  void add(double ratio) {
    logs_ += std::log(ratio);
    least_ = std::min(least_, ratio);
    ++count_;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] double mean() const { return std::exp(logs_ / count_); }
  [[nodiscard]] double least() const { return least_; }

 private:
  double logs_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
  int count_ = 0;
};

}  // namespace

const char* name_of(overlap_shapes shapes) noexcept {
  return shapes == overlap_shapes::prefill ? "prefill" : "decode";
}

double overlap_row::bound() const noexcept { return std::max(compute_bound, link_bound); }

bool overlap_row::right(const pattern_figure& f) const noexcept { return f.error <= tolerance; }

const pattern_figure* overlap_row::figure_of(const std::string& by) const noexcept {
  const auto figure = std::ranges::find(figures, by, &pattern_figure::by);
  return figure == figures.end() ? nullptr : &*figure;
}

double overlap_row::seconds_of(const std::string& by) const noexcept {
  const pattern_figure* figure = figure_of(by);
  return figure != nullptr && figure->time ? figure->time->median : 0;
}

const pattern_figure* overlap_row::best() const noexcept {
  const pattern_figure* best = nullptr;
  for (const pattern_figure& f : figures) {
    if (!f.how || f.library || f.asked == pattern::automatic || !f.time || !right(f)) continue;
    if (best == nullptr || f.time->median < best->time->median) best = &f;
  }
  return best;
}

std::optional<overlap_factors> overlap_report::library_over(const std::string& label) const {
  ratios factors;
  for (const overlap_row& row : rows) {
    const double baseline = row.seconds_of(library_graph);
    const double own = row.seconds_of(label);
    if (baseline > 0 && own > 0) factors.add(baseline / own);
  }
  if (factors.empty()) return std::nullopt;
  return overlap_factors{factors.mean(), factors.least()};
}

std::vector<overlap_bar> overlap_report::bars() const {
  std::vector<overlap_bar> overlap_bars = pattern_bars();
  for (const char* label : {automatic_exact, automatic_capacity}) {
    if (const auto factors = library_over(label))
      overlap_bars.push_back({fmt::format("bulk_library graph / {}, least", label), factors->least,
                              least_of_automatic, false});
  }
  return overlap_bars;
}

std::vector<overlap_bar> overlap_report::pattern_bars() const {
  ratios over_bound;
  ratios beside_eager;
  ratios beside_graph;
  ratios beside_public;
  double most_over_gemm = 0;
  const operator_entry& entry = operator_named(operator_name);
  const public_kernel* others = public_kernel_of(operator_name);
  for (const overlap_row& row : rows) {
    const pattern_figure* best = row.best();
    if (best == nullptr) continue;
    if (const double known = others != nullptr ? others->seconds(row.problem, ranks) : 0; known > 0)
      beside_public.add(known / best->time->median);
    if (beside_others(others, row.problem, ranks)) continue;
    over_bound.add(best->time->median / row.bound());
    const double gemm =
        std::min(row.seconds_of(own_gemm_alone), row.seconds_of(library_gemm_alone));
    most_over_gemm = std::max(most_over_gemm, best->time->median - gemm);
    if (const double t = row.seconds_of(library_eager); t > 0)
      beside_eager.add(t / best->time->median);
    if (const double t = row.seconds_of(library_graph); t > 0)
      beside_graph.add(t / best->time->median);
  }
  if (over_bound.empty() || beside_graph.empty() || beside_eager.empty()) return {};
  const bool decode = shapes == overlap_shapes::decode;
  std::vector<overlap_bar> bars;
  if (entry.sums_to) {
    if (!decode && *entry.sums_to == reduce_target::owner)
      bars.push_back({"time / bound, geometric mean", over_bound.mean(), 1.08, true});
    if (decode && *entry.sums_to == reduce_target::everywhere)
      bars.push_back({"time less the GEMM alone, us, most", 1e6 * most_over_gemm, 6, true});
    bars.push_back({"bulk_library graph / time, least", beside_graph.least(), 1, false});
    return bars;
  }
  const double most_over_bound = decode ? 1.35 : entry.columns_sharded ? 1.10 : 1.06;
  bars.push_back({"time / bound, geometric mean", over_bound.mean(), most_over_bound, true});
  if (decode) bars.push_back({"bulk_library eager / time, mean", beside_eager.mean(), 1.8, false});
  const double graph_bar = decode                  ? 1.4
                           : entry.columns_sharded ? (ranks >= 8   ? 1.4
                                                      : ranks >= 4 ? 1.2
                                                                   : 1)
                                                   : 1.2;
  bars.push_back({"bulk_library graph / time, mean", beside_graph.mean(), graph_bar, false});
  if (!decode) bars.push_back({"bulk_library graph / time, least", beside_graph.least(), 1, false});
  if (!beside_public.empty())
    bars.push_back({others->label + " / time, least", beside_public.least(), 1, false});
  return bars;
}

bool overlap_report::met() const {
  for (const overlap_row& row : rows) {
    for (const pattern_figure& f : row.figures) {
      if (f.time && !row.right(f)) return false;
    }
  }
  return std::ranges::all_of(bars(), &overlap_bar::met);
}

std::vector<gemm_problem> overlap_problems(const std::string& operator_name, overlap_shapes shapes,
                                           int ranks, const std::vector<std::int64_t>& m) {
  std::vector<gemm_problem> problems;
  const bool decode = shapes == overlap_shapes::decode;
  for (const suite_weights& weights : weights_of(operator_named(operator_name), shapes)) {
    for (const std::int64_t rows : weights.rows) {
      if (m.empty() || std::ranges::find(m, rows) != m.end())
        problems.push_back(weights.with_rows(rows));
    }
  }
  if (decode) return problems;
  const public_kernel* others = public_kernel_of(operator_name);
  for (const public_time& t : others != nullptr ? others->times : std::vector<public_time>{}) {
    const gemm_problem p{.m = t.m, .n = t.n, .k = t.k, .type = dtype::bf16};
    if (t.ranks != ranks || !beside_others(others, p, ranks)) continue;
    if (m.empty() || std::ranges::find(m, t.m) != m.end()) problems.push_back(p);
  }
  return problems;
}

std::vector<gemm_problem> random_overlap_problems(const std::string& operator_name,
                                                  overlap_shapes shapes, int count,
                                                  std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<suite_weights> weights = weights_of(operator_named(operator_name), shapes);
  const bool decode = shapes == overlap_shapes::decode;
  const double least = decode ? 1 : 513;
  const double most = decode ? 513 : 16385;
  std::vector<gemm_problem> problems;
  for (int i = 0; i < count; ++i) {
    const suite_weights& drawn = weights[random() % weights.size()];
    const double part = static_cast<double>(random() >> 11U) * 0x1p-53;
    problems.push_back(
        drawn.with_rows(static_cast<std::int64_t>(least * std::pow(most / least, part))));
  }
  return problems;
}

}  // namespace untax::bench
