// Operators with a capacity: runs of different numbers of rows, one after the other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engines/schedule/check.hpp"
#include "engines/schedule/walk.hpp"
#include "ops/collectives_common/registry.hpp"
#include "tests/schedule/rows.hpp"

namespace untax::test {
namespace {

/// Each number of rows before and after each other one, in the same set and in the other.
void each_sequence(const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  for (std::int64_t rows = 0; rows <= capacity; ++rows) {
    for (std::int64_t other = 0; other <= capacity; ++other) {
      visit({rows, other, rows, rows, other, other, rows});
    }
  }
}

std::vector<subject> moves(int world) {
  std::vector<subject> subjects;
  for (const collective_entry& entry : collectives()) {
    for (const pattern how : collective_patterns) {
      for (const bool direct : {false, true}) {
        if (direct && how != pattern::fused_sequential) continue;
        const auto problem = [](std::int64_t count) { return collective_problem{.count = count}; };
        const auto program_of = [=, &entry](int rank, std::int64_t count) {
          collective_options options;
          options.how = how;
          options.direct = direct;
          options.workers = count > 3 ? 2 : 1;
          options.chunk_bytes = count > 3 ? 8 : 4;
          options.depth = count > 4 ? 1 : 2;
          if (entry.has_phases && world > 1)
            options.phases = direct && entry.combines ? 2 : count > 2 ? 2 : 1;
          return entry.program_of(problem(count), entry.plan(problem(count), world, rank, options));
        };
        subjects.push_back({fmt::format("{} {}{}, {} ranks", entry.name, name_of(how),
                                        direct ? ", direct" : "", world),
                            world, program_of,
                            [=, &entry](int rank, std::int64_t count) -> schedule::operand_extents {
                              return {{1, entry.in_count(problem(count), world, rank)},
                                      {0, 0},
                                      {1, entry.out_count(problem(count), world, rank)}};
                            }});
      }
    }
  }
  return subjects;
}

std::vector<subject> subjects(int world) {
  auto subjects_of_world = gemms(world);
  for (subject& s : moves(world)) subjects_of_world.push_back(std::move(s));
  return subjects_of_world;
}

TEST(schedules_of_rows, are_right_for_any_order_of_runs) {
  int proved = 0;
  for (int world = 1; world <= 4; ++world) {
    for (const subject& s : subjects(world)) {
      each_sequence([&](const std::vector<std::int64_t>& rows) {
        // All pairs where ranks are few; elsewhere some.
        if (++proved % (world < 3 ? 1 : 5) != 0) return;
        const auto report = schedule::check_schedule(plans_of(s, rows));
        ASSERT_TRUE(report.ok()) << s.name << ", rows " << fmt::format("{}", fmt::join(rows, ", "))
                                 << ": " << report.problems.front();
      });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(proved, 1000);
}

/// A mistake with sets or counters.
struct mistake {
  const char* name;
  std::function<void(step&, std::uint64_t epoch, int world, std::int64_t inbox_rows)> make;
  std::set<std::string> harms;  ///< operators
};

/// Operators whose inbox peers fill. (Into the C of gemm_all_scatter they write when it is opened
/// for them, in each run; there the roll call only compares numbers.)
std::set<std::string> filled_by_peers() {
  return {"all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce", "all_gather",
          "reduce_scatter",  "all_reduce",          "all_to_all",      "broadcast"};
}

std::set<std::string> every_operator() {
  std::set<std::string> names = filled_by_peers();
  names.insert("gemm_all_scatter");
  return names;
}

const std::vector<mistake>& mistakes() {
  static const std::vector<mistake> entries = {
      {"nobody waits for the roll call",
       [](step& s, std::uint64_t, int world, std::int64_t) {
         if (s.acquire.named() && s.acquire.ready < run_sets * world) s.acquire = {};
       },
       filled_by_peers()},
      {"all runs are in one set of memory",
       [](step& s, std::uint64_t, int, std::int64_t inbox_rows) {
         for (place step::*at : {&step::from, &step::to}) {
           place& p = s.*at;
           if (p.of != operand::inbox || p.row < inbox_rows / run_sets) continue;
           p.row -= inbox_rows / run_sets;
         }
       },
       filled_by_peers()},
      {"counters begin anew in each run",
       [](step& s, std::uint64_t epoch, int world, std::int64_t) {
         const std::uint64_t used = (row_run{epoch, 0}.turn() - 1) * most_uses;
         for (room step::*verb : {&step::reserve, &step::acquire, &step::publish, &step::retire}) {
           room& r = s.*verb;
           if (!r.named() || r.ready < run_sets * world || used == 0) continue;
           r.use -= used;
         }
       },
       every_operator()},
  };
  return entries;
}

// Each mistake is found in every operator that it harms, in some pattern, by some pair of numbers.
TEST(schedules_of_rows, with_a_mistake_are_wrong) {
  for (const mistake& m : mistakes()) {
    std::set<std::string> harmed;
    for (const subject& s : subjects(2)) {
      const std::string name = s.name.substr(0, s.name.find(' '));
      each_sequence([&](const std::vector<std::int64_t>& rows) {
        if (harmed.contains(name)) return;
        auto plans = plans_of(s, rows);
        for (schedule::rank_plan& plan : plans) {
          const std::int64_t inbox_rows = plan.extent_of(operand::inbox).rows;
          for (std::uint64_t epoch = 1; epoch <= plan.epochs(); ++epoch) {
            for (const auto& stage : plan.stages()) {
              for (const schedule::worker_name who : stage) {
                for (step& it : plan.steps(who, epoch)) m.make(it, epoch, plan.world(), inbox_rows);
              }
            }
          }
        }
        if (!schedule::check_schedule(plans).ok()) harmed.insert(name);
      });
    }
    EXPECT_EQ(harmed, m.harms) << m.name;
  }
}

}  // namespace
}  // namespace untax::test
