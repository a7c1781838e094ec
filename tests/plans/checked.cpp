// The arguments of planned kernels match their programs, for many plans. For small worlds the
// schedules of all ranks' kernels are proved, lane by lane: they end, do not race and complete all
// of C, wherever the senders are. Ranks with the same GPUs plan the same;
// tests/plans/agreement.cpp has the errors of ranks that do not.
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/flow/control.hpp>

#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/gemm_all_scatter/device_schedule.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using namespace plans_test;
using plan_check::gather_model;
using plan_check::scatter_model;

template <class Model, class Case>
void expect_faultless(const std::vector<Case>& cases) {
  std::set<std::string> known;
  for (const Case& p : cases) {
    // A plan's faults depend on all but the GEMM.
    const auto lines = p.plan.agreed();
    const std::string kind = fmt::format("{} {} {} {} {} {}", p.problem.m, p.problem.n, p.problem.k,
                                         p.rank, lines[0], lines[1]);
    if (!known.insert(kind).second) continue;
    const auto faults = Model(p.problem, p.plan).faults();
    ASSERT_TRUE(faults.empty()) << p.text() << "\n" << faults.front();
  }
}

TEST(checked, gathers_match_their_programs) { expect_faultless<gather_model>(gather_cases()); }
TEST(checked, scatters_match_their_programs) { expect_faultless<scatter_model>(scatter_cases()); }

/// A request for a GPU of few multiprocessors, whose plans have all features of a whole GPU in
/// fewer lanes.
template <class Problem>
asked<Problem> small_world(numbers& number, pattern how) {
  constexpr std::int64_t most_rows[] = {16, 64, 300, 1400};
  constexpr std::int64_t most_eights[] = {8, 60, 160};
  asked<Problem> what;
  what.world = number.count(1, 5);
  what.sms = 2 * number.count(3, 12);
  what.options.how = how;
  if (number(0, 2) == 0) what.options.move = direction::pull;
  what.problem.m = number(1, number.one_of(most_rows));
  what.problem.n = 8 * number(1, number.one_of(most_eights));
  what.problem.k = 8 * number(1, number.one_of(most_eights));
  if (number(0, 3) == 0) what.options.senders = number.count(1, 6);
  if (number(0, 3) == 0) what.options.workers = number.count(2, what.sms);
  return what;
}

/// `check(problem, ranks, options, multiprocessors)` finds nothing wrong.
template <class Problem, class Check>
void expect_right(const asked<Problem>& what, const Check& check) {
  SCOPED_TRACE(what.text());
  const device_findings findings = check(what.problem, what.world, what.options, what.sms);
  ASSERT_EQ(findings.refusal, "");
  ASSERT_TRUE(findings.faults.empty()) << findings.plan << "\n" << findings.faults.front();
  ASSERT_GT(findings.steps, 0U);
}

TEST(checked, schedules_of_gathers_are_right) {
  const auto look = [](numbers& number) {
    for (const pattern how : own_patterns) {
      auto what = small_world<all_gather_gemm_problem>(number, how);
      for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
        what.problem.gather = gather;
        expect_right(what, plan_check::check_gather);
      }
    }
  };
  each_round(10, look, 500);
}
TEST(checked, schedules_of_scatters_are_right) {
  const auto look = [](numbers& number) {
    for (const pattern how : own_patterns)
      expect_right(small_world<gemm_all_scatter_problem>(number, how), plan_check::check_scatter);
  };
  each_round(10, look, 600);
}

template <class Case>
void expect_agreement(const std::vector<Case>& cases) {
  std::vector<std::string> lines;  // of rank 0
  for (const Case& p : cases) {
    if (p.choice > 0) continue;
    if (p.rank == 0) lines = p.plan.agreed();
    ASSERT_EQ(p.plan.agreed(), lines) << p.text();
  }
}
TEST(plan_agreement, ranks_with_the_same_gpus_agree) {
  expect_agreement(gather_cases());
  expect_agreement(scatter_cases());
}

/// The ledger keeps lines of so many bytes whole; a longer one would hide its middle.
TEST(plan_agreement, lines_are_kept_whole) {
  each_plan([](const auto& p) {
    for (const std::string& line : p.plan.agreed())
      ASSERT_LE(line.size() + 32, ledger_line::longest_call) << line;
  });
}

}  // namespace
