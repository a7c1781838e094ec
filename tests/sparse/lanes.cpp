// Kernels whose lanes share a row have the bits that as many threads of a GPU would have.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include <untax/sparse/spmv.hpp>

#include "support.hpp"

namespace untax::sparse {
namespace {

/// Halves are added to each other until one is left.
template <class Value>
Value tree(const std::vector<Value>& terms) {
  if (terms.size() == 1) return terms.front();
  const std::size_t half = terms.size() / 2;
  std::vector<Value> sums;
  for (std::size_t i = 0; i < half; ++i) sums.push_back(terms[i] + terms[i + half]);
  return tree(sums);
}

/// Element i of a row belongs to lane i mod `lanes`, long rows of mixed ways have 128 of them; each
/// warp has a tree, and then there is one of the warps.
template <class Value, class Offset>
Value row_of_lanes(const csr<Value, Offset>& m, std::size_t row, const std::vector<Value>& x,
                   std::size_t lanes) {
  constexpr std::size_t warp = 32;
  const auto begin = static_cast<std::size_t>(m.offsets[row]);
  const auto end = static_cast<std::size_t>(m.offsets[row + 1]);
  std::vector<Value> sums;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    Value sum = 0;
    for (std::size_t i = begin + lane; i < end; i += lanes)
      sum = std::fma(m.values[i], x[static_cast<std::size_t>(m.columns[i])], sum);
    sums.push_back(sum);
  }
  if (lanes <= warp) return tree(sums);
  std::vector<Value> warps;
  for (auto at = sums.begin(); at != sums.end(); at += warp)
    warps.push_back(tree(std::vector<Value>(at, at + warp)));
  return tree(warps);
}

template <class Value, class Offset>
void compare(std::uint64_t seed) {
  // Odd lengths, so that rows begin anywhere.
  const auto m = test::with_rows<Value, Offset>(
      {1, 0, 31, 33, 255, 257, 700, 5, 1023, 64, 2, 128, 129, 1025, 2048, 2049, 3000}, 3200, seed);
  const auto x = test::random_vector<Value>(m.cols, seed + 1);
  int compared = 0;
  for (const spmv_kernel kernel : all_spmv_kernels) {
    const auto lanes = static_cast<std::size_t>(way_of(kernel).lanes);
    if (way_of(kernel).sum != row_sum::lanes || lanes == 0 || !way_of(kernel).on_host) continue;
    ++compared;
    std::vector<Value> y(static_cast<std::size_t>(m.rows));
    spmv<Value, Offset>(m.view(), kernel, 3).run(1, x, 0, y);
    for (std::size_t row = 0; row < y.size(); ++row) {
      const auto elements = static_cast<std::size_t>(m.offsets[row + 1] - m.offsets[row]);
      const bool is_long = way_of(kernel).mixed && elements > 64 * lanes;
      EXPECT_EQ(y[row], row_of_lanes(m, row, x, is_long ? 128 : lanes))
          << name_of(kernel) << ", row " << row;
    }
  }
  EXPECT_GE(compared, 6);
}

TEST(lanes, add_rows_as_a_gpu_does) {
  compare<float, std::int32_t>(1);
  compare<float, std::int64_t>(2);
  compare<double, std::int32_t>(3);
  compare<double, std::int64_t>(4);
}

}  // namespace
}  // namespace untax::sparse
