// Products of sparse matrices and vectors on a GPU, in every way, against the contract and against
// the host.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <untax/sparse/device_spmv.hpp>
#include <untax/sparse/profile.hpp>
#include <untax/sparse/spmv.hpp>

#include "engines/gpu/sparse/device_array.hpp"
#include "gpus.hpp"
#include "src/symmetric/cuda/graph.hpp"
#include "tests/sparse/contract.hpp"

namespace {

using namespace gpu_test;
using namespace untax::sparse;
using namespace untax::sparse::test;

template <class T>
device_array<T> on_gpu(const std::vector<T>& from, const stream& s) {
  // Never null, since cuSPARSE does not like that.
  device_array<T> made(std::max<std::int64_t>(std::ssize(from), 1), s.get());
  copy(made.data(), from.data(), from.size(), s);
  return made;
}

/// A matrix on a GPU, with vectors, made ready for a way.
template <class Value, class Offset>
class product {
 public:
  product(const csr<Value, Offset>& m, spmv_kernel kernel)
      : offsets_(on_gpu(m.offsets, on_)),
        columns_(on_gpu(m.columns, on_)),
        values_(on_gpu(m.values, on_)),
        made_({m.rows, m.cols, m.view().size(), offsets_.data(), columns_.data(), values_.data()},
              kernel, on_.get()) {}
  product(const product&) = delete;
  product& operator=(const product&) = delete;
  ~product() { EXPECT_TRUE(on_.done()); }

  void run(Value alpha, const std::vector<Value>& x, Value beta, std::vector<Value>& y) {
    const auto x_there = on_gpu(x, on_);
    const auto y_there = on_gpu(y, on_);
    made_.run(alpha, x_there.data(), beta, y_there.data(), on_.get());
    copy(y.data(), y_there.data(), y.size(), on_);
  }
  /// The same several times, out of a graph.
  void run_graph(int times, const std::vector<Value>& x, std::vector<Value>& y) {
    const auto x_there = on_gpu(x, on_);
    const auto y_there = on_gpu(y, on_);
    const untax::gpu::graph all(on_.get(), [&] {
      made_.run(1, x_there.data(), 0, y_there.data(), on_.get());
      made_.run(1, x_there.data(), 1, y_there.data(), on_.get());
    });
    for (int i = 0; i < times; ++i) all.launch(on_.get());
    copy(y.data(), y_there.data(), y.size(), on_);
  }

 private:
  stream on_;
  device_array<Offset> offsets_;
  device_array<std::int32_t> columns_;
  device_array<Value> values_;
  device_spmv<Value, Offset> made_;
};

template <class Value, class Offset>
maker_of<Value, Offset> by_gpu(spmv_kernel kernel) {
  return [=](const csr<Value, Offset>& m) -> product_of<Value> {
    const auto result = std::make_shared<product<Value, Offset>>(m, kernel);
    return [=](Value alpha, const std::vector<Value>& x, Value beta, std::vector<Value>& y) {
      result->run(alpha, x, beta, y);
    };
  };
}

/// ELL may be too large, and cuSPARSE may lack something.
bool may_refuse(spmv_kernel kernel) {
  return kernel == spmv_kernel::ell || !way_of(kernel).on_host;
}

template <class Value, class Offset>
void try_ways(const std::vector<std::int64_t>& lengths, std::int64_t cols, std::uint64_t seed) {
  const auto m = with_rows<Value, Offset>(lengths, cols, seed);
  for (const spmv_kernel kernel : all_spmv_kernels) {
    const std::string what = fmt::format("{}, {} rows, {} elements, seed {}", name_of(kernel),
                                         m.rows, m.view().size(), seed);
    try {
      EXPECT_EQ(
          broken_contract(m, by_gpu<Value, Offset>(kernel), is_reproducible_on_gpu(kernel), seed),
          "")
          << what;
    } catch (const untax::error& e) {
      EXPECT_EQ(e.code(), untax::errc::unsupported) << what << ": " << e.what();
      EXPECT_TRUE(may_refuse(kernel)) << what << ": " << e.what();
    }
  }
}

template <class Value, class Offset>
void try_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases(6); ++i) {
    const std::int64_t most = i % 3 == 0 ? 40 : i % 3 == 1 ? 3000 : 60000;
    const auto rows = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    const auto cols = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)) + 1;
    try_ways<Value, Offset>(random_lengths(rows, cols, random), cols, random());
  }
}

TEST(spmv, keeps_the_contract_for_random_matrices) {
  NEEDS_GPUS(1);
  try_random<float, std::int32_t>(1);
  try_random<float, std::int64_t>(2);
  try_random<double, std::int32_t>(3);
  try_random<double, std::int64_t>(4);
}

TEST(spmv, keeps_the_contract_for_odd_matrices) {
  NEEDS_GPUS(1);
  std::uint64_t seed = 10;
  for (const auto& lengths : odd_lengths()) {
    try_ways<double, std::int32_t>(lengths, 9000, ++seed);
    try_ways<float, std::int64_t>(lengths, 9000, ++seed);
  }
}

TEST(spmv, takes_matrices_without_elements) {
  NEEDS_GPUS(1);
  for (const auto& [rows, cols] : {std::pair<int, int>{0, 0}, {0, 5}, {5, 0}, {3, 1000}}) {
    const std::vector<std::int64_t> empty(static_cast<std::size_t>(rows), 0);
    try_ways<double, std::int32_t>(empty, cols, 1);
    try_ways<float, std::int64_t>(empty, cols, 1);
  }
}

TEST(spmv, takes_a_dense_row_of_a_million) {
  NEEDS_GPUS(1);
  std::vector<std::int64_t> lengths(1000, 3);
  lengths[500] = 1'000'000;
  try_ways<double, std::int32_t>(lengths, 1'000'000, 5);
  try_ways<float, std::int64_t>(lengths, 1'000'000, 6);
}

/// Ways whose order of addition the host has, too.
template <class Value, class Offset>
void expect_bits_of_host(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto m = with_rows<Value, Offset>(random_lengths(2000, 3000, random), 3000, seed);
  const auto x = random_vector<Value>(m.cols, seed);
  const auto before = random_vector<Value>(m.rows, seed + 1);
  for (const spmv_kernel kernel : all_spmv_kernels) {
    if (way_of(kernel).unit != unit_of_work::row || way_of(kernel).sum != row_sum::lanes) continue;
    std::vector<Value> first = before;
    std::vector<Value> second = before;
    spmv<Value, Offset>(m.view(), kernel, 2).run(1.5, x, 0.75, first);
    product<Value, Offset>(m, kernel).run(1.5, x, 0.75, second);
    EXPECT_EQ(first, second) << name_of(kernel) << ", seed " << seed;
  }
}

TEST(spmv, by_lanes_has_the_bits_of_the_host) {
  NEEDS_GPUS(1);
  expect_bits_of_host<float, std::int32_t>(21);
  expect_bits_of_host<double, std::int64_t>(22);
}

TEST(spmv, can_be_captured) {
  NEEDS_GPUS(1);
  std::mt19937_64 random(31);
  const auto m = with_rows<double, std::int32_t>(random_lengths(3000, 4000, random), 4000, 31);
  const auto x = random_vector<double>(m.cols, 31);
  for (const spmv_kernel kernel : all_spmv_kernels) {
    try {
      product<double, std::int32_t> one(m, kernel);
      std::vector<double> y(static_cast<std::size_t>(m.rows), -7);
      one.run_graph(3, x, y);
      // Twice the product, whatever ran before.
      EXPECT_LE(
          spmv_error(m.view(), 2, std::span<const double>(x), 0, {}, std::span<const double>(y)),
          spmv_tolerance<double>)
          << name_of(kernel);
    } catch (const untax::error& e) {
      EXPECT_TRUE(may_refuse(kernel)) << name_of(kernel) << ": " << e.what();
    }
  }
}

template <class Offset>
void expect_bounds(const std::vector<std::int64_t>& lengths) {
  const stream s;
  const auto m = with_rows<float, Offset>(lengths, 9000, 1);
  const row_profile right = profile_of(std::span<const Offset>(m.offsets), m.cols);
  const auto offsets = on_gpu(m.offsets, s);
  const row_bounds bounds = bounds_of_rows(m.rows, offsets.data(), s.get());
  EXPECT_EQ(static_cast<double>(bounds.shortest), right.row_min) << m.rows;
  EXPECT_EQ(static_cast<double>(bounds.longest), right.row_max) << m.rows;
  EXPECT_EQ(static_cast<double>(bounds.padded), right.padded) << m.rows;
  EXPECT_NEAR(bounds.variance, right.row_variance, 1e-9 * (1 + right.row_max * right.row_max));
}

template <class Value>
void multiply_often(std::uint64_t seed) {
  const auto m = with_rows<Value, std::int32_t>(std::vector<std::int64_t>(500, 9), 700, seed);
  try {
    product<Value, std::int32_t> made(m, spmv_kernel::cusparse_csr2);
    const std::vector<Value> x(700, 1);
    const std::vector<Value> zeros(500, 0);
    std::vector<Value> first = zeros;
    made.run(1, x, 0, first);
    EXPECT_NE(first, zeros);
    for (int i = 0; i < cases(200); ++i) {
      std::vector<Value> y = zeros;
      made.run(1, x, 0, y);
      ASSERT_EQ(y, first) << "run " << i << ", seed " << seed;
    }
  } catch (const untax::error& e) {
    EXPECT_EQ(e.code(), untax::errc::unsupported) << e.what();
  }
}

// cuSPARSE has one handle for a GPU, which has one stream at a time.
TEST(spmv, threads_multiply_side_by_side) {
  NEEDS_GPUS(1);
  std::vector<std::jthread> threads;
  for (const std::uint64_t seed : {1, 2}) {
    threads.emplace_back([=] { multiply_often<float>(seed); });
    threads.emplace_back([=] { multiply_often<double>(seed); });
  }
}

TEST(spmv, bounds_of_rows_are_those_of_the_profile) {
  NEEDS_GPUS(1);
  for (const auto& lengths : odd_lengths()) {
    expect_bounds<std::int32_t>(lengths);
    expect_bounds<std::int64_t>(lengths);
  }
  expect_bounds<std::int32_t>({});
}

TEST(spmv, refuses_operands_that_do_not_fit) {
  NEEDS_GPUS(1);
  const stream s;
  expect_error(error_of([&] {
                 device_spmv<double, std::int32_t>({-1, 0, 0, nullptr, nullptr, nullptr},
                                                   spmv_kernel::csr_thread, s.get());
               }),
               untax::errc::invalid_argument, {"these are 0 or more"});
  std::vector<std::int64_t> lengths(100'000, 1);
  lengths[7] = 9000;
  const auto m = with_rows<float, std::int32_t>(lengths, 9000, 1);
  expect_error(error_of([&] { product<float, std::int32_t>(m, spmv_kernel::ell); }),
               untax::errc::unsupported, {"ELL would store"});
}

}  // namespace
