// What operators refuse before anything moves, and products that are wider than what is kept
// widened at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/half.hpp>
#include <untax/untax.hpp>

#include "ops/common/memory_need.hpp"
#include "ops/common/row_table.hpp"
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

/// Each size of a problem is refused by its name where there is nothing of it, and where a kernel
/// could not count it.
template <class Operator, class Problem>
void expect_sizes(const Problem& usual,
                  std::initializer_list<std::pair<const char*, std::int64_t Problem::*>> sizes) {
  for (const auto& [name, size] : sizes) {
    for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 31}) {
      Problem problem = usual;
      problem.*size = wrong;
      expect_error(error_of([&] { run_threads(2, [&](world& w) { Operator(w, problem); }); }),
                   errc::invalid_argument, {fmt::format(": {} is {};", name, wrong)});
    }
  }
}

TEST(arguments, a_single_row_has_no_stride) {
  run_threads(1, [](world& w) {
    all_gather_gemm op(w, {.m = 1, .n = 1, .k = 8, .type = dtype::f32});
    const std::vector<float> ones(8, 1.0F);
    float sum = 0;
    const const_matrix row(ones.data(), dtype::f32, 1, 8, 0);
    op.run(row, row, {&sum, 1, 1});
    EXPECT_EQ(sum, 8.0F);
  });
}

TEST(memory_needs, are_sums_and_have_units) {
  memory_need need{.weights = 1, .activations = 20, .heaps = 300, .work_space = 4000};
  EXPECT_EQ(need.total(), 4321);
  EXPECT_EQ(memory_text(1023), "1023 bytes");
  EXPECT_EQ(memory_text(1024), "1 KiB");
  EXPECT_EQ(memory_text(1536.0 * 1024 * 1024), "1.5 GiB");
}

TEST(row_tables, have_ends_that_grow_up_to_the_capacity) {
  for (std::int64_t capacity = 1; capacity <= 130; ++capacity) {
    const std::vector<std::int64_t> ends = row_ends(capacity);
    EXPECT_EQ(ends.back(), capacity);
    EXPECT_TRUE(std::ranges::adjacent_find(ends, std::ranges::greater_equal{}) == ends.end())
        << capacity;
    std::int64_t before = 1;
    for (const std::int64_t end : ends) {
      EXPECT_LE(end, std::max<std::int64_t>(2, before + (before + 1) / 2)) << capacity;
      before = end;
    }
  }
}

TEST(arguments, that_are_sizes_are_refused_by_name) {
  using gather = all_gather_gemm_problem;
  expect_sizes<all_gather_gemm, gather>({.m = 8, .n = 8, .k = 8},
                                        {{"m", &gather::m}, {"n", &gather::n}, {"k", &gather::k}});
  using scatter = gemm_all_scatter_problem;
  expect_sizes<gemm_all_scatter, scatter>(
      {.m = 8, .n = 8, .k = 8}, {{"m", &scatter::m}, {"n", &scatter::n}, {"k", &scatter::k}});
  using owners = gemm_reduce_scatter_problem;
  expect_sizes<gemm_reduce_scatter, owners>(
      {.m = 8, .n = 8, .k = 8}, {{"m", &owners::m}, {"n", &owners::n}, {"k", &owners::k}});
  using sums = gemm_all_reduce_problem;
  expect_sizes<gemm_all_reduce, sums>({.m = 8, .n = 8, .k = 8},
                                      {{"m", &sums::m}, {"n", &sums::n}, {"k", &sums::k}});
  using norm = all_reduce_norm_problem;
  expect_sizes<all_reduce_norm, norm>({.tokens = 8, .hidden = 8},
                                      {{"tokens", &norm::tokens}, {"hidden", &norm::hidden}});
}

/// An operator that another one was moved to does what that did, at the sizes of that.
TEST(arguments, are_those_of_the_operator_that_was_moved_there) {
  run_threads(1, [](world& w) {
    const std::vector<float> in(32 * 16, 1.0F);
    gemm_all_scatter scatter(w, {.m = 4, .n = 8, .k = 8, .type = dtype::f32});
    scatter = gemm_all_scatter(w, {.m = 6, .n = 16, .k = 12, .type = dtype::f32});
    EXPECT_EQ(scatter.result().rows, 6);
    EXPECT_EQ(scatter.result().cols, 16);
    EXPECT_NO_THROW(scatter.run({in.data(), 6, 12}, {in.data(), 16, 12}));
    EXPECT_EQ(static_cast<const float*>(scatter.result().data)[6 * 16 - 1], 12.0F);
    gemm_all_reduce sums(w, {.m = 4, .n = 8, .k = 8, .type = dtype::f32});
    sums = gemm_all_reduce(w, {.m = 6, .n = 16, .k = 12, .type = dtype::f32});
    EXPECT_EQ(sums.result().rows, 6);
    EXPECT_EQ(sums.result().cols, 16);
    EXPECT_NO_THROW(sums.run({in.data(), 6, 12}, {in.data(), 16, 12}));
    EXPECT_EQ(static_cast<const float*>(sums.result().data)[6 * 16 - 1], 12.0F);
    all_reduce_norm norm(w, {.tokens = 4, .hidden = 8, .type = dtype::f32});
    norm = all_reduce_norm(w, {.tokens = 6, .hidden = 16, .type = dtype::f32});
    EXPECT_EQ(norm.problem().tokens, 6);
    EXPECT_EQ(norm.problem().hidden, 16);
    EXPECT_NO_THROW(norm.run({{in.data(), 6, 16}, {in.data(), 6, 16}, in.data()}));
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
