// The schedules of planned kernels are proved for all ranks, lane by lane: that they end, race
// nowhere, and complete all of C, whatever the placement of senders is.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/gemm_all_scatter/lowered.hpp"
#include "tests/plans/cases.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using plans_test::own_patterns;

/// GPUs of few multiprocessors have all that whole ones have, in few lanes.
constexpr int few = 12;

void expect_right(const device_findings& found, const std::string& what) {
  ASSERT_EQ(found.refusal, "") << what;
  ASSERT_TRUE(found.faults.empty()) << what << ": " << found.plan << "\n" << found.faults.front();
  ASSERT_GT(found.steps, 0U) << what;
}

TEST(schedules, of_gathers_are_right) {
  constexpr std::int64_t rows[] = {1, 16, 48, 130, 300, 700};
  int number = 0;
  for (const std::int64_t m : rows) {
    for (const pattern how : own_patterns) {
      for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
        for (const direction move : {direction::push, direction::pull}) {
          const bool pulls = how == pattern::producer_consumer || how == pattern::fused_specialized;
          if (move == direction::pull && !pulls) continue;
          const int ranks = 1 + ++number % 4;
          const std::int64_t n = number % 3 == 0 ? 520 : 264;
          const std::int64_t k = number % 5 == 0 ? 40 : number % 2 == 0 ? 328 : 768;
          operator_options options;
          options.how = how;
          options.move = move;
          expect_right(
              check_on_gpus(all_gather_gemm_problem{.m = m, .n = n, .k = k, .gather = gather},
                            ranks, options, few),
              fmt::format("{} x {} x {}, {} ranks, {}, gather {}, {}", m, n, k, ranks, name_of(how),
                          name_of(gather), name_of(move)));
        }
      }
    }
  }
}

TEST(schedules, of_scatters_are_right) {
  constexpr std::int64_t rows[] = {1, 16, 48, 130, 300, 700};
  int number = 0;
  for (const std::int64_t m : rows) {
    for (const pattern how : own_patterns) {
      for (int ranks = 1; ranks <= 4; ++ranks) {
        const std::int64_t n = ++number % 7 == 0 ? 8 : number % 3 == 0 ? 1000 : 264;
        operator_options options;
        options.how = how;
        expect_right(check_on_gpus(gemm_all_scatter_problem{m, n, 328}, ranks, options, few),
                     fmt::format("{} x {}, {} ranks, {}", m, n, ranks, name_of(how)));
      }
    }
  }
}

}  // namespace
