#include "bench/suites/gemm.hpp"

#include <algorithm>
#include <cmath>

namespace untax::bench {

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

double gemm_report::mean_ratio(bool skinny) const noexcept {
  double sum = 0;
  int count = 0;
  for (const gemm_row& row : rows) {
    if (row.skinny() != skinny) continue;
    sum += std::log(row.ratio());
    ++count;
  }
  return count == 0 ? 1 : std::exp(sum / count);
}

bool gemm_report::met() const noexcept {
  return mean_ratio(false) >= gemm_mean_bar && std::ranges::all_of(rows, &gemm_row::met);
}

std::vector<gemm_row> gemm_shapes(const gemm_suite_options& options) {
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
