#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engines/schedule/check.hpp"
#include "engines/schedule/walk.hpp"
#include "ops/collectives_common/workload.hpp"

namespace untax::testing {

/// Leaves out every acquire of one flag, and returns their number.
inline int leave_out(std::vector<schedule::rank_plan>& plans, const room& flag) {
  int count = 0;
  for (schedule::rank_plan& plan : plans) {
    for (std::uint64_t epoch = 1; epoch <= plan.epochs(); ++epoch) {
      for (const auto& stage : plan.stages()) {
        for (const auto who : stage) {
          for (step& s : plan.steps(who, epoch)) {
            if (s.acquire.number != flag.number || s.acquire.consumer != flag.consumer) continue;
            s.acquire = {};
            ++count;
          }
        }
      }
    }
  }
  return count;
}

/// Mutants change every step of one kind. Here each flag between two lanes is left out alone: the
/// schedule checker has to find an access that is no longer ordered.
inline void check_every_flag(const collective_entry& entry) {
  int flags = 0;
  for (const protocol_variant& variant : variants_of(entry)) {
    if (variant.name.find("direct") == std::string::npos) continue;
    for (const int ranks : {2, 3}) {
      for (const schedule_case& c : variant.schedule_cases(ranks, true)) {
        std::vector<room> rooms;
        const auto plans = c.plans();
        for (const schedule::rank_plan& plan : plans) {
          schedule::each_step(plan, [&](const schedule::step_position& at, const step& s) {
            if (at.epoch == 1 && s.acquire.named()) rooms.push_back(s.acquire);
          });
        }
        for (const room& flag : rooms) {
          auto without = plans;
          EXPECT_GT(leave_out(without, flag), 0);
          EXPECT_FALSE(schedule::check_schedule(without).ok())
              << c.name << ": nothing needs " << schedule::describe(flag);
          ++flags;
        }
      }
    }
  }
  EXPECT_GT(flags, 0);
}

}  // namespace untax::testing
