// What kernels are planned to do is what their programs say, for many plans; and for worlds that
// are small enough the schedules of all ranks' kernels are proved, lane by lane: that they end,
// race nowhere and complete all of C, wherever the senders are. Ranks with the same GPUs plan the
// same; what they are told that do not is in tests/planning/agreement.cpp.
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/flow/control.hpp>

#include "ops/common/plan_agreement.hpp"
#include "ops/plan_check/gather.hpp"
#include "ops/plan_check/scatter.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::each_plan;
using plans_test::numbers;
using plans_test::own_patterns;

/// What a plan's faults depend on: all but the GEMM.
template <class Planned>
std::string kind_of(const Planned& p) {
  const auto lines = p.plan.agreed();
  return fmt::format("{} {} {} {} {} {}", p.problem.m, p.problem.n, p.problem.k, p.how.rank(),
                     lines[0], lines[1]);
}

template <class Model, class Cases>
void expect_faultless(const Cases& cases) {
  std::set<std::string> known;
  each_plan(cases, [&](const auto& p) {
    if (testing::Test::HasFailure() || !known.insert(kind_of(p)).second) return;
    const auto faults = Model(p.problem, p.plan).faults();
    ASSERT_TRUE(faults.empty()) << p.text << "\n" << faults.front();
  });
}

TEST(checked, gathers_do_what_their_programs_say) {
  expect_faultless<plan_check::gather_model>(plans_test::gather_cases());
}
TEST(checked, scatters_do_what_their_programs_say) {
  expect_faultless<plan_check::scatter_model>(plans_test::scatter_cases());
}

void expect_right(const device_findings& found, const std::string& what) {
  ASSERT_EQ(found.refusal, "") << what;
  ASSERT_TRUE(found.faults.empty()) << what << ": " << found.plan << "\n" << found.faults.front();
  ASSERT_GT(found.steps, 0U) << what;
}

/// What somebody may ask a GPU of few multiprocessors for, which has all that a whole one has in
/// fewer lanes.
struct small_world {
  int ranks;
  int num_sms;
  operator_options options;
  std::int64_t m, n, k;

  small_world(numbers& number, pattern how)
      : ranks(static_cast<int>(number(1, 5))),
        num_sms(static_cast<int>(2 * number(3, 12))),
        options{.how = how, .move = number(0, 2) == 0 ? direction::pull : direction::push},
        m(number(1, number.one_of(most_rows))),
        n(8 * number(1, number.one_of(most_eights))),
        k(8 * number(1, number.one_of(most_eights))) {
    if (number(0, 3) == 0) options.senders = static_cast<int>(number(1, 6));
    if (number(0, 3) == 0) options.workers = static_cast<int>(number(2, num_sms));
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} x {} x {}, {} ranks of {} SMs, {} {}, {} senders, {} workers", m, n, k,
                       ranks, num_sms, name_of(options.how), name_of(options.move), options.senders,
                       options.workers);
  }

 private:
  static constexpr std::int64_t most_rows[] = {16, 64, 300, 1400};
  static constexpr std::int64_t most_eights[] = {8, 60, 160};
};

/// Calls `check(world, seed)` for some of each pattern.
template <class Check>
void each_small_world(unsigned first_seed, const Check& check) {
  for (const unsigned seed : plans_test::seeds()) {
    numbers number(first_seed + seed);
    for (int round = 0; round < 10; ++round) {
      for (const pattern how : own_patterns) {
        if (testing::Test::HasFatalFailure()) return;
        check(small_world(number, how), fmt::format("seed {}, round {}", seed, round));
      }
    }
  }
}

TEST(checked, schedules_of_gathers_are_right) {
  each_small_world(500, [](const small_world& w, const std::string& at) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k})
      expect_right(plan_check::check_gather({.m = w.m, .n = w.n, .k = w.k, .gather = gather},
                                            w.ranks, w.options, w.num_sms),
                   fmt::format("{}, gather {}, {}", w.text(), name_of(gather), at));
  });
}

TEST(checked, schedules_of_scatters_are_right) {
  each_small_world(600, [](const small_world& w, const std::string& at) {
    expect_right(plan_check::check_scatter({w.m, w.n, w.k}, w.ranks, w.options, w.num_sms),
                 w.text() + ", " + at);
  });
}

TEST(plan_agreement, ranks_with_the_same_gpus_agree) {
  for (const auto& c : plans_test::gather_cases()) {
    for (const auto& p : c.ranks) ASSERT_EQ(p.plan.agreed(), c.ranks.front().plan.agreed());
  }
  for (const auto& c : plans_test::scatter_cases()) {
    for (const auto& p : c.ranks) ASSERT_EQ(p.plan.agreed(), c.ranks.front().plan.agreed());
  }
}

/// The ledger keeps lines of so many bytes whole; a longer one would hide its middle.
TEST(plan_agreement, lines_are_kept_whole) {
  const auto look = [](const plan_lines& lines) {
    for (const std::string& line : lines)
      ASSERT_LE(line.size() + 32, ledger_line::longest_call) << line;
  };
  each_plan(plans_test::gather_cases(), [&](const auto& p) { look(p.plan.agreed()); });
  each_plan(plans_test::scatter_cases(), [&](const auto& p) { look(p.plan.agreed()); });
}

}  // namespace
