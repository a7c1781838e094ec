// bulk_synchronous of gathers of rows: all_gather into symmetric memory, and a product behind it.
// Where ranks share a GPU the product is of untax's kernels alone.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "row_inputs.hpp"

namespace {

using namespace gpu_test;

constexpr pattern way[] = {pattern::bulk_synchronous};

void expect_explained(const std::string& text) {
  EXPECT_NE(text.find("bulk_synchronous, "), std::string::npos) << text;
  EXPECT_NE(text.find("one GEMM by "), std::string::npos) << text;
  if (sharing() > 1) {
    EXPECT_EQ(text.find("cuBLASLt"), std::string::npos) << text;
  }
}

/// By packets and directly, with rows that ranks have unequal numbers of, or none.
TEST(gpu_gathered_products, random_problems_are_right) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  for (const int ranks : {1, gpus()}) {
    untax::run_gpus(
        ranks,
        [&](world& w) {
          const stream s;
          const operator_entry entry = untax::all_gather_gemm_entry();
          std::mt19937_64 random(seed);  // the same at all ranks
          std::mt19937_64 stalls(static_cast<std::uint64_t>(w.rank()) * 977 + seed);
          const auto below = [&](std::int64_t most) {
            return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
          };
          std::string plans;
          for (int i = 0; i < gpu_test::cases(24); ++i) {
            const std::int64_t most[] = {2L * w.size(), 128, 700, 3000};
            const gemm_problem p{.m = below(most[i % 4]),
                                 .n = 8 * below(i % 3 == 0 ? 1200 : 100),
                                 .k = 8 * below(i % 5 == 0 ? 700 : 100),
                                 .type = i % 2 == 0 ? dtype::bf16 : dtype::f16,
                                 .gather = gather_axis::rows};
            const operator_options options{.how = pattern::bulk_synchronous,
                                           .invariant = i % 6 == 1,
                                           .constant_weights = i % 7 < 3};
            SCOPED_TRACE(fmt::format("seed {}, rank {} of {}, case {}: {}{}", seed, w.rank(),
                                     w.size(), i, text_of(entry, p, options),
                                     options.invariant ? ", invariant" : ""));
            workload load(w, entry, p, options, seed);
            expect_explained(load.explain());
            plans += load.explain() + "\n";
            expect_right(w, s, load, tolerance_of(entry, p), seed, stalls);
          }
          if (ranks == 1 || gpu_test::cases(24) < 24) return;
          EXPECT_NE(plans.find("packets"), std::string::npos);
        },
        roomy_world());
    if (::testing::Test::HasFailure()) return;
  }
}

/// More bytes than packets have: peers store them where the product reads them.
TEST(gpu_gathered_products, large_problems_are_right) {
  NEEDS_GPUS(2);
  const std::uint64_t seed = std::random_device{}();
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        const operator_entry entry = untax::all_gather_gemm_entry();
        std::mt19937_64 stalls(static_cast<std::uint64_t>(w.rank()) * 977 + seed);
        for (const std::int64_t m : {std::int64_t{1023}, std::int64_t{2048}, 128L * w.size() - 3}) {
          const gemm_problem p{
              .m = m, .n = 3000, .k = 6152, .type = dtype::bf16, .gather = gather_axis::rows};
          const operator_options options{.how = pattern::bulk_synchronous};
          SCOPED_TRACE(fmt::format("seed {}, rank {} of {}: {}", seed, w.rank(), w.size(),
                                   text_of(entry, p, options)));
          workload load(w, entry, p, options, seed);
          expect_explained(load.explain());
          if (m > 1000) {
            EXPECT_NE(load.explain().find("direct, without rooms"), std::string::npos)
                << load.explain();
          }
          expect_right(w, s, load, tolerance_of(entry, p), seed, stalls);
        }
      },
      roomy_world());
}

/// Runs of few rows go by packets and those of many directly, in random order.
TEST(gpu_gathered_products, any_number_of_rows_is_right) {
  NEEDS_GPUS(1);
  const gemm_problem most{
      .m = 2500, .n = 520, .k = 4104, .type = dtype::bf16, .gather = gather_axis::rows};
  const auto rows = [&](std::mt19937_64& random) {
    std::vector<std::int64_t> numbers{1, 2, 3, 64, 65, most.m - 1, most.m};
    for (int i = 0; i < 8; ++i)
      numbers.push_back(1 +
                        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most.m)));
    return numbers;
  };
  each_pattern(way, untax::all_gather_gemm_entry(), most, rows,
               [&](world& w, untax::runnable& op, auto& inputs, auto& random, const stream& s) {
                 expect_explained(op.explain());
                 const int runs = gpu_test::cases(150);
                 for (int i = 0; i < runs; ++i) {
                   const row_inputs& now = inputs[random() % inputs.size()];
                   now.launch(op, s);
                   if (i % 4 != 0 && i + 1 < runs) continue;
                   ASSERT_TRUE(s.done());
                   w.check();
                   now.expect_right(s);
                   if (::testing::Test::HasFailure()) return;
                 }
               });
}

}  // namespace
