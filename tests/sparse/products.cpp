#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <untax/sparse/spmv.hpp>

#include "support.hpp"

namespace untax::sparse {
namespace {

using test::random_vector;
using test::refusal;
using test::with_rows;

/// Every kernel by 1 to 7 threads, for some alpha and beta, against the compensated sum. Kernels
/// that would pad too much are left out.
template <class Value, class Offset>
void try_all(const csr<Value, Offset>& m, std::uint64_t seed, const std::vector<int>& threads) {
  const auto x = random_vector<Value>(m.cols, seed);
  const auto before = random_vector<Value>(m.rows, seed + 1);
  for (const spmv_kernel kernel : all_spmv_kernels) {
    if (!way_of(kernel).on_host) continue;
    std::vector<Value> first;
    for (const int count : threads) {
      const std::string what = std::string(name_of(kernel)) + ", " + std::to_string(count) +
                               " threads, seed " + std::to_string(seed);
      try {
        spmv<Value, Offset> product(m.view(), kernel, count);
        EXPECT_EQ(product.which(), kernel);
        EXPECT_GE(product.setup_seconds(), 0);
        for (const auto& [alpha, beta] : {std::pair<Value, Value>{1, 0}, {2.5, 0}, {-1, 0.5}}) {
          // With beta = 0 the kernel must not read y.
          std::vector<Value> y(before.size(), std::numeric_limits<Value>::quiet_NaN());
          if (beta != 0) y = before;
          product.run(alpha, x, beta, y);
          EXPECT_LE(spmv_error(m.view(), alpha, std::span<const Value>(x), beta,
                               std::span<const Value>(before), std::span<const Value>(y)),
                    spmv_tolerance<Value>)
              << what;
          if (alpha != 1) continue;
          if (first.empty()) first = y;
          if (is_reproducible(kernel)) {
            EXPECT_EQ(y, first) << what;
          }
          std::vector<Value> again(before.size());
          product.run(alpha, x, beta, again);
          EXPECT_EQ(again, y) << what;
        }
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::unsupported) << what << ": " << e.what();
        EXPECT_EQ(kernel, spmv_kernel::ell) << what;
      }
    }
  }
}

template <class Value, class Offset>
void try_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < 6; ++i) {
    const auto rows = static_cast<std::int64_t>(random() % 300);
    const auto cols = static_cast<std::int64_t>(random() % 300) + 1;
    std::vector<std::int64_t> lengths;
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::uint64_t kind = random() % 8;
      const auto most = kind == 0 ? cols : std::min<std::int64_t>(cols, 9);
      lengths.push_back(
          kind < 3 && i % 2 == 0
              ? 0
              : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1)));
    }
    try_all(with_rows<Value, Offset>(lengths, cols, random()),
            seed + 100U * static_cast<unsigned>(i), {1, 2, 7});
  }
}

TEST(products, are_right_for_random_matrices) {
  try_random<float, std::int32_t>(1);
  try_random<float, std::int64_t>(2);
  try_random<double, std::int32_t>(3);
  try_random<double, std::int64_t>(4);
}

// Nothing is padded where all rows are empty, so ELL takes any number of them.
TEST(products, of_many_empty_rows_are_zero_by_every_kernel) {
  const csr<float, std::int32_t> m =
      with_rows<float, std::int32_t>(std::vector<std::int64_t>(70'000, 0), 3, 1);
  const std::vector<float> x = {1, 2, 3};
  for (const spmv_kernel kernel : all_spmv_kernels) {
    if (!way_of(kernel).on_host) continue;
    std::vector<float> y(70'000, 5);
    spmv<float, std::int32_t>(m.view(), kernel, 2).run(1, x, 0, y);
    EXPECT_EQ(y, std::vector<float>(70'000, 0)) << name_of(kernel);
  }
}

TEST(products, are_right_for_odd_matrices) {
  const std::vector<int> threads = {1, 2, 5};
  for (const auto& [rows, cols] : {std::pair<int, int>{0, 0}, {0, 5}, {5, 0}, {1, 1}, {3, 1000}}) {
    const std::vector<std::int64_t> empty(static_cast<std::size_t>(rows), 0);
    try_all(with_rows<double, std::int32_t>(empty, cols, 1), 1, threads);
  }
  try_all(with_rows<double, std::int32_t>({0, 0, 0, 7, 0, 0}, 7, 2), 2, threads);
  try_all(with_rows<double, std::int32_t>({9000, 0, 4096, 4097, 1, 0, 8193}, 9000, 3), 3, threads);
  try_all(with_rows<float, std::int64_t>({1}, 1, 4), 4, {1, 64});
}

TEST(products, are_right_with_one_dense_row_of_a_million) {
  std::vector<std::int64_t> lengths(1000, 3);
  lengths[500] = 1'000'000;
  const auto m = with_rows<double, std::int32_t>(lengths, 1'000'000, 5);
  try_all(m, 5, {1, 3});
  EXPECT_NE(refusal([&] {
              spmv<double, std::int32_t>(m.view(), spmv_kernel::ell, 1);
            }).find("ELL would store 1e+09 elements"),
            std::string::npos);
}

// Rows that are equally long are not padded at all, however many there are.
TEST(products, of_equal_rows_need_no_padding_in_ell) {
  const auto m = with_rows<double, std::int32_t>(std::vector<std::int64_t>(10'000, 2), 100, 9);
  const auto x = random_vector<double>(100, 9);
  std::vector<double> y(10'000);
  spmv<double, std::int32_t>(m.view(), spmv_kernel::ell, 2).run(1, x, 0, y);
  EXPECT_LE(
      spmv_error(m.view(), 1.0, std::span<const double>(x), 0.0, {}, std::span<const double>(y)),
      spmv_tolerance<double>);
}

TEST(products, read_nothing_outside_the_matrix) {
  // Padding must not multiply what x has elsewhere.
  const auto m = with_rows<double, std::int32_t>({1, 2, 0}, 3, 6);
  std::vector<double> x(3, std::numeric_limits<double>::infinity());
  for (const spmv_kernel kernel : all_spmv_kernels) {
    if (!way_of(kernel).on_host) continue;
    std::vector<double> y(3);
    spmv<double, std::int32_t>(m.view(), kernel, 2).run(1, x, 0, y);
    EXPECT_EQ(y[2], 0) << name_of(kernel);
  }
}

TEST(products, errors_are_seen) {
  const auto m = with_rows<double, std::int32_t>({3, 0, 5}, 9, 7);
  const auto x = random_vector<double>(9, 7);
  std::vector<double> y(3);
  spmv_reference(m.view(), 1, std::span<const double>(x), 0, std::span<double>(y));
  const auto error_of = [&] {
    return spmv_error(m.view(), 1, std::span<const double>(x), 0, {}, std::span<const double>(y));
  };
  EXPECT_LE(error_of(), 1e-16);
  for (const double wrong :
       {1e-9, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (std::size_t r = 0; r < 3; ++r) {
      const double right = y[r];
      y[r] += wrong;
      EXPECT_GT(error_of(), 1e-10) << r;
      y[r] = right;
    }
  }
}

TEST(products, compensated_sums_survive_cancellation) {
  csr<double, std::int32_t> m;
  m.rows = 1;
  m.cols = 3;
  m.offsets = {0, 3};
  m.columns = {0, 1, 2};
  m.values = {1e20, 1, -1e20};
  const std::vector<double> x(3, 1);
  std::vector<double> y(1);
  spmv_reference(m.view(), 1, std::span<const double>(x), 0, std::span<double>(y));
  EXPECT_EQ(y[0], 1);
}

TEST(products, of_cusparse_are_refused) {
  const auto m = with_rows<double, std::int32_t>({1, 2}, 3, 8);
  EXPECT_NE(refusal([&] {
              spmv<double, std::int32_t>(m.view(), spmv_kernel::cusparse_coo, 1);
            }).find("cusparse_coo is a kernel of cuSPARSE, which needs a GPU"),
            std::string::npos);
}

TEST(products, refuse_operands_that_do_not_fit) {
  auto m = with_rows<double, std::int32_t>({1, 2}, 3, 8);
  spmv<double, std::int32_t> product(m.view(), spmv_kernel::csr_thread, 1);
  std::vector<double> two(2);
  EXPECT_NE(refusal([&] {
              product.run(1, two, 0, two);
            }).find("x has 2 elements and y 2; they have to have 3 and 2"),
            std::string::npos);
  for (const int threads : {0, -1, 1025})
    EXPECT_NE(refusal([&] {
                spmv<double, std::int32_t>(m.view(), spmv_kernel::coo, threads);
              }).find("threads"),
              std::string::npos);
  const auto refused = [&](const char* what) {
    const std::string text = refusal([&] { require_valid(m.view()); });
    EXPECT_NE(text.find(what), std::string::npos) << text;
    if (*what == '\0') return;
    const auto product_of_it = [&] {
      spmv<double, std::int32_t>(m.view(), spmv_kernel::csr_thread, 1);
    };
    EXPECT_EQ(refusal(product_of_it), text);
  };
  refused("");
  m.columns[1] = 3;
  refused("element 1 is in column 3");
  m.columns[1] = -1;
  refused("element 1 is in column -1");
  m.columns[1] = 0;
  m.offsets[1] = 4;
  refused("row 1 begins at 4 and ends at 3");
  m.offsets = {1, 1, 3};
  refused("begin with 1");
  m.offsets = {0, 1};
  refused("2 rows and 2 offsets");
  m.offsets = {0, 1, 9};
  refused("count 9 elements");
  m.cols = -1;
  refused("2 x -1");
}

}  // namespace
}  // namespace untax::sparse
