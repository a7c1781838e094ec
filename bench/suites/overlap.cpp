#include "bench/suites/overlap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/suites/public_kernels.hpp"
#include "ops/common/registry.hpp"

namespace untax::bench {
namespace {

/// Columns of one rank, and K, of the shapes that all but the public kernels' times count.
constexpr std::int64_t gathered_columns[] = {7168, 3584};
constexpr std::int64_t gathered_k = 8192;

/// Shapes that are measured to compare them with public kernels alone.
bool beside_others(const public_kernel* others, const gemm_problem& p, int ranks) {
  const bool usual = p.k == gathered_k && std::ranges::count(gathered_columns, p.n) > 0;
  return !usual && others != nullptr && others->seconds(p, ranks) > 0;
}

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
  const auto found = std::ranges::find(figures, by, &pattern_figure::by);
  return found == figures.end() ? nullptr : &*found;
}

double overlap_row::seconds_of(const std::string& by) const noexcept {
  const pattern_figure* found = figure_of(by);
  return found != nullptr && found->time ? found->time->median : 0;
}

const pattern_figure* overlap_row::best() const noexcept {
  const pattern_figure* best = nullptr;
  for (const pattern_figure& f : figures) {
    if (!f.how || f.library || !f.time || !right(f)) continue;
    if (best == nullptr || f.time->median < best->time->median) best = &f;
  }
  return best;
}

std::vector<overlap_bar> overlap_report::bars() const {
  ratios over_bound;
  ratios beside_eager;
  ratios beside_graph;
  ratios beside_public;
  const bool scatters = operator_named(operator_name).columns_sharded;
  const public_kernel* others = public_kernel_of(operator_name);
  for (const overlap_row& row : rows) {
    const pattern_figure* best = row.best();
    if (best == nullptr) continue;
    if (const double known = others != nullptr ? others->seconds(row.problem, ranks) : 0; known > 0)
      beside_public.add(known / best->time->median);
    if (beside_others(others, row.problem, ranks)) continue;
    over_bound.add(best->time->median / row.bound());
    if (const double t = row.seconds_of(library_eager); t > 0)
      beside_eager.add(t / best->time->median);
    if (const double t = row.seconds_of(library_graph); t > 0)
      beside_graph.add(t / best->time->median);
  }
  if (over_bound.empty() || beside_graph.empty() || beside_eager.empty()) return {};
  const bool decode = shapes == overlap_shapes::decode;
  const double most_over_bound = decode ? 1.35 : scatters ? 1.10 : 1.06;
  std::vector<overlap_bar> all = {
      {"time / bound, geometric mean", over_bound.mean(), most_over_bound, true}};
  if (decode) all.push_back({"bulk_library eager / time, mean", beside_eager.mean(), 1.8, false});
  const double graph_bar = decode     ? 1.4
                           : scatters ? (ranks >= 8   ? 1.4
                                         : ranks >= 4 ? 1.2
                                                      : 1)
                                      : 1.2;
  all.push_back({"bulk_library graph / time, mean", beside_graph.mean(), graph_bar, false});
  if (!decode) all.push_back({"bulk_library graph / time, least", beside_graph.least(), 1, false});
  if (!beside_public.empty())
    all.push_back({others->label + " / time, least", beside_public.least(), 1, false});
  return all;
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
  std::vector<gemm_problem> all;
  const auto add = [&](std::int64_t rows, std::int64_t n, std::int64_t k, gather_axis gather) {
    if (m.empty() || std::ranges::find(m, rows) != m.end())
      all.push_back({.m = rows, .n = n, .k = k, .type = dtype::bf16, .gather = gather});
  };
  const auto add_rows = [&](std::int64_t n, std::int64_t k, gather_axis gather) {
    if (shapes == overlap_shapes::prefill) {
      for (const std::int64_t rows : {1024, 2048, 4096, 8192, 16384}) add(rows, n, k, gather);
    } else {
      for (std::int64_t rows = 1; rows <= 512; rows *= 2) add(rows, n, k, gather);
    }
  };
  if (operator_named(operator_name).columns_sharded) {
    constexpr std::int64_t sizes[][2] = {{4096, 12288}, {4096, 14336}, {3584, 14336},
                                         {4608, 36864}, {8192, 28672}, {8192, 30720}};
    for (const auto& [n, k] : sizes) {
      if (shapes == overlap_shapes::prefill) {
        add(8192, n, k, gather_axis::rows);
      } else {
        add_rows(n, k, gather_axis::rows);
      }
    }
    return all;
  }
  for (const std::int64_t n : gathered_columns) {
    add_rows(n, gathered_k, gather_axis::rows);
    if (shapes == overlap_shapes::decode) add_rows(n, gathered_k, gather_axis::k);
  }
  if (shapes == overlap_shapes::decode) return all;
  const public_kernel* others = public_kernel_of(operator_name);
  for (const public_time& t : others != nullptr ? others->times : std::vector<public_time>{}) {
    const gemm_problem p{.m = t.m, .n = t.n, .k = t.k, .type = dtype::bf16};
    if (t.ranks == ranks && beside_others(others, p, ranks)) add(t.m, t.n, t.k, gather_axis::rows);
  }
  return all;
}

}  // namespace untax::bench
