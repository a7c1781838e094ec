#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engines/schedule/check.hpp"
#include "engines/schedule/plan.hpp"

namespace untax::test {

/// Calls `change(steps)` with every program of one rank, in every epoch.
template <class Change>
void edit_programs(schedule::rank_plan& plan, Change&& change) {
  for (std::uint64_t epoch = 1; epoch <= plan.epochs(); ++epoch) {
    for (const auto& stage : plan.stages()) {
      for (const auto who : stage) change(plan.steps(who, epoch));
    }
  }
}

/// Calls `change(step)` with every step of one rank, in every epoch.
template <class Change>
void edit_steps(schedule::rank_plan& plan, Change&& change) {
  edit_programs(plan, [&](std::vector<step>& steps) {
    for (step& s : steps) change(s);
  });
}

/// Expects that the checker reports a problem whose text holds all `words`, in this order.
inline void expect_problem(const std::vector<schedule::rank_plan>& plans,
                           const std::vector<std::string>& words) {
  const auto report = schedule::check_schedule(plans);
  EXPECT_FALSE(report.ok());
  std::string joined;
  for (const std::string& text : report.problems) {
    std::size_t at = 0;
    for (const std::string& word : words) {
      if (at != std::string::npos) at = text.find(word, at);
    }
    if (at != std::string::npos) return;
    joined += text + "\n";
  }
  ADD_FAILURE() << "no problem says \"" << words.front() << "\", but:\n" << joined;
}

}  // namespace untax::test
