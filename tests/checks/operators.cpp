// The checks of operators see single wrong words in results of millions of elements. Each mutation
// here passes a check that looks at the Frobenius norm alone, but for those that are no numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>

#include <untax/world/launch.hpp>

#include "mutated.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/flash_decode/inputs.hpp"
#include "ops/gemm_all_reduce/spec.hpp"
#include "ops/merge_partial_attention/workload.hpp"

namespace {

using namespace checks_test;
using namespace untax;

constexpr int ranks = 2;

world_options roomy() {
  world_options options;
  options.heap_bytes = std::size_t{256} << 20U;
  return options;
}

/// Runs `body` at every rank; checks are made at rank 0, while the other ranks wait.
template <class Body>
void at_rank_0(const Body& body) {
  run_threads(
      ranks,
      [&](world& w) {
        body(w, w.rank() == 0);
        w.barrier();
      },
      roomy());
}

TEST(check_of_gemms, sees_a_wrong_word) {
  for (const operator_entry& entry : operators()) {
    for (const dtype type : {dtype::bf16, dtype::f16}) {
      SCOPED_TRACE(entry.name + ", " + std::string(name_of(type)));
      const gemm_problem p{.m = 1024, .n = 2048, .k = 16, .type = type};
      at_rank_0([&](world& w, bool checks) {
        workload load(w, entry, p, {}, 7);
        load.run();
        if (!checks) return;
        const auto error = [&] { return load.relative_error(); };
        if (type == dtype::bf16) {
          expect_seen(elements_of<bf16>(load.result()), tolerance_of(entry, p), error);
        } else {
          expect_seen(elements_of<f16>(load.result()), tolerance_of(entry, p), error);
        }
      });
    }
  }
}

/// The part of a rank in row `row` and column `col` of a sum.
double partial(const workload& load, std::int64_t row, std::int64_t col) {
  const auto* a = static_cast<const bf16*>(load.a().data) + row * load.a().stride;
  const auto* b = static_cast<const bf16*>(load.weights().data) + col * load.weights().stride;
  double sum = 0;
  for (std::int64_t k = 0; k < load.a().cols; ++k)
    sum += static_cast<double>(static_cast<float>(a[k])) *
           static_cast<double>(static_cast<float>(b[k]));
  return sum;
}

// With 8 ranks a partial result is the smallest part of a sum, and the bound is the widest.
TEST(check_of_gemms, sees_that_a_partial_result_is_missing_in_a_fragment) {
  const operator_entry entry = gemm_all_reduce_entry();
  for (const int world_size : {2, 8}) {
    SCOPED_TRACE(world_size);
    const gemm_problem p{
        .m = 1024, .n = 2048, .k = 8 * world_size, .type = dtype::bf16, .partials = dtype::bf16};
    run_threads(
        world_size,
        [&](world& w) {
          workload load(w, entry, p, {}, 11);
          load.run();
          if (w.rank() == 0) {
            ASSERT_LE(load.relative_error(), tolerance_of(entry, p));
            // The fragment of a warp.
            for (std::int64_t row = 512; row < 528; ++row) {
              for (std::int64_t col = 1024; col < 1032; ++col) {
                bf16& element = elements_of<bf16>(
                    load.result())[static_cast<std::size_t>(row * load.result().stride + col)];
                element = bf16(static_cast<float>(static_cast<double>(static_cast<float>(element)) -
                                                  partial(load, row, col)));
              }
            }
            EXPECT_GT(load.relative_error(), tolerance_of(entry, p));
          }
          w.barrier();
        },
        roomy());
  }
}

TEST(check_of_collectives, sees_a_wrong_word) {
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter"}) {
    const collective_entry& entry = collective_named(name);
    for (const reduction how : {reduction::sum, reduction::max}) {
      SCOPED_TRACE(std::string(name) + ", " + std::string(name_of(how)));
      const collective_problem p{.count = 1 << 20, .type = dtype::bf16, .how = how};
      const double tolerance = subject_of(entry, p, {}).tolerance;
      at_rank_0([&](world& w, bool checks) {
        collective_workload load(w, entry, p, {}, 5);
        load.run();
        if (!checks) return;
        expect_seen(elements_of<bf16>(load.operand(collective_operands::out).elements(p.type)),
                    tolerance, [&] { return load.relative_error(); });
      });
    }
  }
}

TEST(check_of_merges, sees_a_wrong_word) {
  const merge_partial_attention_problem p{
      .tokens = 256, .heads = 16, .head_dim = 128, .type = dtype::bf16};
  at_rank_0([&](world& w, bool checks) {
    merge_workload load(w, p, {}, 3);
    load.run();
    if (!checks) return;
    expect_seen(elements_of<bf16>(load.operand(merge_operands::out).elements(p.type)),
                tolerance_of(p), [&] { return load.relative_error(); });
  });
}

TEST(check_of_merges, sees_logarithms_that_are_wrong_or_never_written) {
  for (const bool log2 : {false, true}) {
    const merge_partial_attention_problem p{
        .tokens = 64, .heads = 16, .head_dim = 8, .type = dtype::bf16, .log2 = log2};
    at_rank_0([&](world& w, bool checks) {
      merge_workload load(w, p, {}, 3);
      load.run();
      if (!checks) return;
      const std::span<float> logs =
          elements_of<float>(load.operand(merge_operands::lse).elements(dtype::f32));
      const std::vector<float> right(logs.begin(), logs.end());
      ASSERT_LE(load.relative_error(), tolerance_of(p));
      const auto error_after = [&](const auto& change) {
        change();
        const double error = load.relative_error();
        std::ranges::copy(right, logs.begin());
        return error;
      };
      constexpr float never = std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(error_after([&] { std::ranges::fill(logs, never); }),
                std::numeric_limits<double>::infinity());
      EXPECT_GT(error_after([&] { logs[500] = never; }), tolerance_of(p));
      // Rows that no rank has anything for.
      const float empty = -std::numeric_limits<float>::infinity();
      ASSERT_NE(std::ranges::find(right, empty), right.end());
      EXPECT_GT(error_after([&] { std::ranges::replace(logs, empty, 0.0F); }), tolerance_of(p));
      EXPECT_GT(error_after([&] {
                  *std::ranges::find_if(logs, [](float log) { return std::isfinite(log); }) +=
                      0.01F;
                }),
                tolerance_of(p));
    });
  }
}

TEST(check_of_decoding, sees_a_wrong_word) {
  attention_work work{.problem = {.batch = 256, .heads = 64, .kv_heads = 8, .head_dim = 64}};
  work.problem.keys = 6;
  work.problem.type = dtype::bf16;
  const attention_inputs::reference right = attention_inputs(work, 2, 9).result();
  std::vector<bf16> actual;
  for (const double value : right.values) actual.emplace_back(static_cast<float>(value));
  expect_seen(std::span(actual), tolerance_of(work.problem), [&] {
    return relative_error({actual.data(), dtype::bf16, 256 * 64, 64}, right);
  });
}

}  // namespace
