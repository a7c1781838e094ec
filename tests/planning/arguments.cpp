// What operators refuse before anything moves, and products that are wider than what is kept
// widened at once.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <untax/core/half.hpp>
#include <untax/untax.hpp>

#include "tests/errors.hpp"

namespace untax {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

template <class Run>
void expect_overlap(std::string_view what, const Run& run) {
  expect_error(error_of([&] { run_threads(1, run); }), errc::invalid_argument,
               {std::string(what) + " and the result share memory"});
}

TEST(arguments, that_share_memory_with_the_result_are_refused) {
  std::vector<float> memory(300);
  std::vector<float> apart(300);
  const auto at = [&](int i) { return memory.data() + i; };
  expect_overlap("a", [&](world& w) {
    all_gather_gemm op(w, {.m = 8, .n = 8, .k = 8, .type = dtype::f32});
    op.run({at(0), 8, 8}, {apart.data(), 8, 8}, {at(63), 8, 8});
  });
  expect_overlap("weights", [&](world& w) {
    all_gather_gemm op(w, {.m = 8, .n = 8, .k = 8, .type = dtype::f32});
    op.run({apart.data(), 8, 8}, {at(63), 8, 8}, {at(0), 8, 8});
  });
  expect_overlap("a", [&](world& w) {
    gemm_reduce_scatter op(w, {.m = 8, .n = 8, .k = 8, .type = dtype::f32});
    op.run({at(0), 8, 8}, {apart.data(), 8, 8}, {at(63), 8, 8});
  });
  expect_overlap("weights", [&](world& w) {
    gemm_reduce_scatter op(w, {.m = 8, .n = 8, .k = 8, .type = dtype::f32});
    op.run({apart.data(), 8, 8}, {at(63), 8, 8}, {at(0), 8, 8});
  });
  expect_overlap("a", [&](world& w) {
    gemm_all_scatter op(w, {.m = 8, .n = 8, .k = 8, .type = dtype::f32});
    const matrix c = op.result();
    op.run({c.data, dtype::f32, 8, 8}, {apart.data(), 8, 8}, c);
  });
  // What is empty shares nothing, wherever it lies: the last rank has no row of A.
  run_threads(2, [&](world& w) {
    all_gather_gemm op(w, {.m = 1, .n = 8, .k = 8, .type = dtype::f32});
    std::vector<float> c(8);
    const const_matrix shard =
        w.rank() == 0 ? const_matrix(apart.data(), 1, 8) : const_matrix(c.data() + 4, 0, 8);
    EXPECT_NO_THROW(op.run(shard, {memory.data(), 8, 8}, {c.data(), 1, 8}));
  });
  // Side by side they do not.
  run_threads(1, [&](world& w) {
    gemm_reduce_scatter op(w, {.m = 8, .n = 8, .k = 8, .type = dtype::f32});
    EXPECT_NO_THROW(op.run({at(0), 8, 8}, {at(128), 8, 8}, {at(64), 8, 8}));
  });
}

TEST(products, wider_than_what_is_kept_widened_are_right) {
  // 4 Mi elements are kept: 960 columns of so many.
  constexpr std::int64_t m = 3, n = 1100, k = 4200;
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  std::vector<bf16> a(m * k);
  std::vector<bf16> weights(n * k);
  for (auto* values : {&a, &weights}) {
    for (bf16& value : *values) value = bf16(normal(random));
  }
  run_threads(1, [&](world& w) {
    for (const dtype partials : {dtype::f32, dtype::bf16}) {
      std::vector<bf16> c(m * n, bf16(NAN));
      gemm_reduce_scatter op(w, {.m = m, .n = n, .k = k, .type = dtype::bf16, .partials = partials},
                             {.workers = 1, .tile_n = n, .panel_k = k});
      op.run({a.data(), dtype::bf16, m, k}, {weights.data(), dtype::bf16, n, k},
             {c.data(), dtype::bf16, m, n});
      for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t col = 0; col < n; ++col) {
          double sum = 0;
          for (std::int64_t i = 0; i < k; ++i)
            sum += static_cast<double>(static_cast<float>(a[row * k + i])) *
                   static_cast<double>(static_cast<float>(weights[col * k + i]));
          // Rounded twice to 8 bits, of numbers whose size is that of the square root of k.
          ASSERT_NEAR(static_cast<float>(c[row * n + col]), sum, 0.02 * std::abs(sum) + 0.5)
              << row << ", " << col;
        }
      }
    }
  });
}

}  // namespace
}  // namespace untax
