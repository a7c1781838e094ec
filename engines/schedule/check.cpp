#include "engines/schedule/check.hpp"

#include <fmt/format.h>

#include "engines/schedule/execution.hpp"
#include "engines/schedule/problems.hpp"
#include "engines/schedule/signals.hpp"
#include "engines/schedule/step_checks.hpp"

namespace untax::schedule {
namespace {

void check_ranks(std::span<const rank_plan> plans, problem_list& problems) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const rank_plan& plan = plans[i];
    if (plan.rank() != static_cast<int>(i) || plan.world() != static_cast<int>(plans.size())) {
      problems.add(fmt::format("plan {} of {} is for rank {} of {}", i, plans.size(), plan.rank(),
                               plan.world()));
    }
    if (plan.epochs() != plans.front().epochs()) {
      problems.add(fmt::format("rank {} runs {} epochs, rank 0 runs {}", i, plan.epochs(),
                               plans.front().epochs()));
    }
  }
}

}  // namespace

schedule_report check_schedule(std::span<const rank_plan> plans, const ordering_filter& orders) {
  problem_list problems;
  schedule_report report;
  report.ranks = static_cast<int>(plans.size());
  check_ranks(plans, problems);
  if (problems.empty()) {
    check_rectangles(plans, problems);
    check_chains(plans, problems);
    const signal_table signals(plans, problems);
    if (problems.empty()) {
      execution run(plans, signals, problems, orders);
      run.run();
      report.steps = run.steps();
      report.waits = run.waits();
    }
  }
  report.problems = problems.texts();
  return report;
}

}  // namespace untax::schedule
