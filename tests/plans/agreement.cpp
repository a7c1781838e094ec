// Ranks with the same GPUs plan the same, in lines that the ledger keeps. What ranks are told that
// do not is in tests/planning/agreement.cpp.
#include <string>

#include <gtest/gtest.h>

#include <untax/flow/control.hpp>

#include "ops/common/plan_agreement.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;

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
