// Arguments that operators refuse before anything moves, and products wider than the widened copy
// that a worker keeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/half.hpp>
#include <untax/untax.hpp>

#include "ops/common/arguments.hpp"
#include "ops/common/memory_need.hpp"
#include "ops/common/row_table.hpp"
#include "ops/gemm_all_reduce/protocol.hpp"
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
  // An empty operand overlaps nothing, wherever it lies: the last rank has no row of A.
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

// An odd number of elements of one byte ends in the middle of a pair.
TEST(arguments, of_one_byte_elements_are_checked_to_the_last_byte) {
  run_threads(1, [](world& w) {
    all_reduce_norm op(w,
                       {.tokens = 1, .hidden = 5, .type = dtype::f32, .output = norm_output::e4m3});
    std::vector<float> residual(5), weight(5), x(5), one(10);
    auto* const bytes = reinterpret_cast<std::byte*>(one.data());
    const auto run = [&](int offset) {
      op.run({{one.data() + 5, 1, 5}, {residual.data(), 1, 5}, weight.data()},
             {x.data(), bytes + 20 + offset});
    };
    EXPECT_NO_THROW(run(-5));
    expect_error(error_of([&] { run(-4); }), errc::invalid_argument,
                 {"in and the result share memory"});
  });
}

/// A size of a problem is refused by its name if it is below its least value, or too large for a
/// kernel to count.
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

TEST(arguments, are_refused_if_they_cannot_be_addressed) {
  const argument_check check{"op", 3};
  const std::vector<float> values(64);
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  const const_matrix row(values.data(), dtype::f32, 1, 8, 4);
  EXPECT_NO_THROW(check.matrix_of("a", row, {1, 8}, dtype::f32));
  const const_matrix narrow(values.data(), dtype::f32, 2, 8, 7);
  expect_error(error_of([&] {
                 check.matrix_of("a", narrow, {2, 8}, dtype::f32);
               }),
               errc::invalid_argument, {"rank 3: op: a has a row stride of 7"});
  // 2^61 - 8 elements of 4 bytes, and 8 more, are the most that an address difference holds.
  constexpr std::int64_t longest = (std::int64_t{1} << 61) - 9;
  const const_matrix long_rows(values.data(), dtype::f32, 2, 8, longest);
  EXPECT_NO_THROW(check.matrix_of("a", long_rows, {2, 8}, dtype::f32));
  for (const std::int64_t stride : {longest + 1, std::numeric_limits<std::int64_t>::max()}) {
    const const_matrix longer(values.data(), dtype::f32, 2, 8, stride);
    expect_error(error_of([&] {
                   check.matrix_of("a", longer, {2, 8}, dtype::f32);
                 }),
                 errc::invalid_argument,
                 {fmt::format("a has a row stride of {}; with 2 rows of 8 elements it can be {}",
                              stride, longest)});
  }
  const const_matrix crooked(bytes + 1, dtype::f32, 1, 8, 8);
  expect_error(error_of([&] {
                 check.matrix_of("a", crooked, {1, 8}, dtype::f32);
               }),
               errc::invalid_argument, {"elements of 4 bytes have to be aligned"});
}

TEST(arguments, of_each_operator_are_checked) {
  run_threads(2, [](world& w) {
    std::vector<float> x(64);
    std::vector<float> y(64);
    std::vector<float> z(64);
    all_gather_gemm gather(w, {.m = 8, .n = 8, .k = 8, .type = dtype::f32});
    expect_error(error_of([&] {
                   gather.run({x.data(), 4, 8}, {y.data(), 8, 8}, {z.data(), 8, 7});
                 }),
                 errc::invalid_argument, {"c is 8 x 7"});
    all_reduce sum(w, {.count = 8, .type = dtype::f32});
    expect_error(error_of([&] {
                   sum.run({x.data(), 8}, {y.data(), 7});
                 }),
                 errc::invalid_argument, {"out has 7 elements"});
    const_array_view crooked{x.data(), 8};
    crooked.data = reinterpret_cast<const std::byte*>(x.data()) + 1;
    expect_error(error_of([&] {
                   sum.run(crooked, {y.data(), 8});
                 }),
                 errc::invalid_argument, {"in lies at", "elements of 4 bytes have to be aligned"});
    all_to_all deal(w, {.count = 2, .type = dtype::f32});
    expect_error(error_of([&] {
                   deal.run({x.data(), 3}, {y.data(), 4});
                 }),
                 errc::invalid_argument, {"in has 3 elements"});
    // An empty operand overlaps nothing.
    broadcast spread(w, {.count = 4, .type = dtype::f32});
    const const_array_view in =
        w.rank() == 0 ? const_array_view{x.data(), 4} : const_array_view{y.data() + 1, 0};
    EXPECT_NO_THROW(spread.run(in, {y.data(), 4}));
  });
}

TEST(phases, two_save_bytes_if_every_rank_has_rows) {
  const auto phases = [](std::int64_t m, std::int64_t n, int world, memory_kind memory) {
    return phases_for({.m = m, .n = n, .k = 8, .type = dtype::f32, .partials = dtype::f32}, world,
                      memory);
  };
  const memory_kind host = memory_kind::host;
  EXPECT_EQ(phases(4, 4096, 4, host), 2);
  EXPECT_EQ(phases(4, 4095, 4, host), 1);
  EXPECT_EQ(phases(4, 4096, 5, host), 1);
  EXPECT_EQ(phases(4, 4096, 1, host), 1);
  const memory_kind gpu = memory_kind::cuda;
  EXPECT_EQ(phases(4, 65535, 4, gpu), 1);
  EXPECT_EQ(phases(8, 32767, 4, gpu), 1);
  EXPECT_EQ(phases(8, 32768, 4, gpu), 2);
  EXPECT_EQ(phases(8, 32768, 2, gpu), 1);
  EXPECT_EQ(phases(128, 32767, 2, gpu), 1);
  EXPECT_EQ(phases(128, 32768, 2, gpu), 2);
  EXPECT_EQ(phases(3, 1 << 20, 4, gpu), 1);
}

TEST(memory_needs, add_up_and_have_units) {
  memory_need need{.weights = 1, .activations = 20, .heaps = 300, .work_space = 4000};
  EXPECT_EQ(need.total(), 4321);
  EXPECT_EQ(memory_text(1023), "1023 bytes");
  EXPECT_EQ(memory_text(1024), "1 KiB");
  EXPECT_EQ(memory_text(1536.0 * 1024 * 1024), "1.5 GiB");
  EXPECT_EQ(memory_text(0x1p80), "1.05e+06 EiB");
  need += {.weights = 10, .activations = 200, .heaps = 3000, .work_space = 1, .heap_of_rank = 7};
  EXPECT_EQ(need.weights, 11);
  EXPECT_EQ(need.activations, 220);
  EXPECT_EQ(need.heaps, 3300);
  EXPECT_EQ(need.work_space, 4001);
  EXPECT_EQ(need.heap_of_rank, 7);
}

TEST(row_tables, have_ends_that_grow_up_to_the_capacity) {
  EXPECT_EQ(number_ends(12), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 12}));
  for (std::int64_t capacity = 1; capacity <= 130; ++capacity) {
    const std::vector<std::int64_t> ends = number_ends(capacity);
    EXPECT_EQ(ends, row_ends(capacity));
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

/// The tiles of a plan are those that suit its most rows.
TEST(row_tables, have_ends_not_far_above_any_number_of_rows) {
  for (const std::int64_t capacity : {256, 257, 300, 511, 1024, 1500, 4097, 8192, 10000, 40000}) {
    const std::vector<std::int64_t> ends = row_ends(capacity);
    EXPECT_EQ(ends.back(), capacity);
    EXPECT_TRUE(std::ranges::adjacent_find(ends, std::ranges::greater_equal{}) == ends.end())
        << capacity;
    for (std::int64_t rows = 257; rows <= capacity; ++rows) {
      const std::int64_t end = *std::ranges::lower_bound(ends, rows);
      const std::int64_t most = rows <= 1024 ? 128 : (rows + 7) / 8;
      ASSERT_LT(end - rows, most) << rows << " of " << capacity;
    }
  }
  EXPECT_EQ(row_ends(8192).size(), 50U);
}

TEST(arguments, impossible_sizes_are_refused_by_name) {
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
TEST(arguments, follow_a_moved_operator) {
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

TEST(products, wider_than_the_widened_copy_are_right) {
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
