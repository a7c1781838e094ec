#include "bench/suites/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

#include <fmt/format.h>

namespace untax::bench {
namespace {

/// Rows and columns of weights: those of all projections of a layer of the models in models/, and
/// those of the grid.
constexpr std::int64_t drawn_weights[][2] = {
    {2880, 2880},  {5760, 2880},   {29568, 8192},  {8192, 29568},  {59136, 8192},  {18432, 7168},
    {7168, 18432}, {2112, 7168},   {1536, 5120},   {10240, 8192},  {8192, 8192},   {57344, 8192},
    {8192, 28672}, {28672, 8192},  {6144, 4096},   {4096, 4096},   {28672, 4096},  {4096, 14336},
    {14336, 4096}, {18432, 16384}, {16384, 16384}, {53248, 16384}, {16384, 53248}, {3072, 2048},
    {2048, 2048},  {16384, 2048},  {2048, 8192},   {7168, 8192},   {8192, 3584},   {3584, 14336},
    {4608, 8192}};

/// A random number below `count`, the same with every standard library.
std::int64_t below(std::int64_t count, std::mt19937_64& engine) {
  return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(count));
}

std::vector<gemm_row> drawn(int problems, std::uint32_t seed) {
  constexpr double most_rows = 16384;
  std::mt19937_64 engine(seed);
  std::vector<gemm_row> rows;
  for (int i = 0; i < problems; ++i) {
    const double part = std::ldexp(static_cast<double>(engine() >> 11U), -53);
    const std::int64_t* weights = drawn_weights[below(std::ssize(drawn_weights), engine)];
    const std::int64_t shards = std::int64_t{1} << below(4, engine);
    const bool by_n = below(2, engine) == 0;
    gemm_row row;
    row.m = std::clamp<std::int64_t>(std::llround(std::pow(most_rows, part)), 1, 16384);
    row.n = by_n ? weights[0] / shards : weights[0];
    row.k = by_n ? weights[1] : weights[1] / shards;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

double gemm_row::flops() const noexcept {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) /
         time.median;
}

double gemm_row::weight_bytes() const noexcept {
  return 2.0 * static_cast<double>(n) * static_cast<double>(k) / time.median;
}

double gemm_row::rate_bar() const noexcept {
  return skinny() && n == 7168 && k == 8192 ? 3.6e12 : 0;
}

bool gemm_row::met() const noexcept {
  return !skinny() || (ratio() >= 1 && weight_bytes() >= rate_bar());
}

double gemm_report::mean_ratio(bool few) const noexcept {
  double sum = 0;
  int count = 0;
  for (const gemm_row& row : rows) {
    if ((drawn ? row.few_rows() : row.skinny()) != few) continue;
    sum += std::log(row.ratio());
    ++count;
  }
  return count == 0 ? 1 : std::exp(sum / count);
}

double gemm_report::cost_of_invariant() const noexcept {
  double sum = 0;
  if (!invariant || rows.empty()) return 1;
  for (const gemm_row& row : rows) sum += std::log(row.invariant_time.median / row.time.median);
  return std::exp(sum / static_cast<double>(rows.size()));
}

trace_cost gemm_report::cost_of_trace() const {
  std::vector<traced_ratio> ratios;
  if (traced) {
    for (const gemm_row& row : rows)
      ratios.push_back({fmt::format("m {}, n {}, k {}", row.m, row.n, row.k),
                        row.traced_time.median / row.time.median});
  }
  return cost_of(ratios);
}

double gemm_report::mean_bar(bool few) const noexcept {
  if (drawn) return few ? 1.0 : 0.98;
  return few ? 0 : 0.97;
}

const gemm_row* gemm_report::worst() const noexcept {
  const auto match = std::ranges::min_element(rows, {}, &gemm_row::ratio);
  return match == rows.end() ? nullptr : &*match;
}

bool gemm_report::met() const noexcept {
  if (mean_ratio(true) < mean_bar(true) || mean_ratio(false) < mean_bar(false)) return false;
  if (!drawn) return std::ranges::all_of(rows, &gemm_row::met);
  return worst() == nullptr || worst()->ratio() >= least_bar();
}

std::vector<gemm_row> gemm_shapes(const gemm_suite_options& options) {
  if (options.problems > 0) {
    std::vector<gemm_row> rows = drawn(options.problems, options.seed);
    std::erase_if(rows, [&](const gemm_row& row) {
      return row.m < options.least_rows || row.m > options.most_rows;
    });
    return rows;
  }
  constexpr std::int64_t weights[][2] = {
      {7168, 8192}, {8192, 3584}, {3584, 14336}, {8192, 28672}, {4608, 8192}};
  std::vector<std::int64_t> sizes = options.sizes;
  if (sizes.empty()) sizes = {1, 16, 64, 256, 1024, 2048, 4096, 8192, 16384};
  std::vector<gemm_row> rows;
  for (const auto& [n, k] : weights) {
    for (const std::int64_t m : sizes) {
      gemm_row row;
      row.m = m;
      row.n = n;
      row.k = k;
      rows.push_back(row);
    }
  }
  return rows;
}

int steps_of(const gemm_suite_options& options) {
  return static_cast<int>(gemm_shapes(options).size());
}

}  // namespace untax::bench
