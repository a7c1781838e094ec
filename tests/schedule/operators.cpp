// The schedules of all operators: right as they are, and wrong as soon as a step touches something
// else.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engines/schedule/check.hpp"
#include "engines/schedule/walk.hpp"
#include "ops/checks.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/operators.hpp"
#include "tests/schedule/broken.hpp"

namespace untax::test {
namespace {

template <class Entries, class Look>
void each_case(const Entries& entries, int ranks, Look&& look) {
  for (const auto& entry : entries) {
    for (const protocol_variant& variant : variants_of(entry)) {
      for (const schedule_case& c : variant.schedule_cases(ranks, true)) look(c);
    }
  }
}

TEST(schedules, of_all_operators_are_right) {
  for (const int ranks : {1, 2, 3}) {
    const auto prove = [](const schedule_case& c) {
      const auto report = schedule::check_schedule(c.plans());
      EXPECT_TRUE(report.ok()) << c.name << ": " << report.problems.front();
    };
    each_case(operator_specs(), ranks, prove);
  }
}

struct change {
  const char* name;
  std::function<bool(step&)> make;  // false: this step cannot be changed so
};

const std::vector<change>& changes() {
  const auto moves = [](const step& s) { return s.what != action::none; };
  static const std::vector<change> entries = {
      {"writes the next row",
       [=](step& s) {
         return moves(s) && s.to.of != operand::product && s.to.of != operand::sum &&
                s.to.of != operand::none && ++s.to.row > 0;
       }},
      {"begins anew",
       [](step& s) {
         s.first = !s.first;
         return s.what == action::multiply;
       }},
      {"has a row less", [=](step& s) { return moves(s) && s.rows > 0 && --s.rows >= 0; }},
      {"has a column less", [=](step& s) { return moves(s) && s.cols > 0 && --s.cols >= 0; }},
  };
  return entries;
}

TEST(schedules, with_a_step_on_other_memory_are_wrong) {
  std::mt19937_64 random(7);
  int tried = 0;
  const auto try_some = [&](const schedule_case& c) {
    const auto right = c.plans();
    std::size_t moving = 0;
    for (const schedule::rank_plan& plan : right) {
      schedule::each_step(plan, [&](const schedule::step_position& /*at*/, const step& s) {
        if (s.what != action::none) ++moving;
      });
    }
    for (int trial = 0; trial < 24 && moving > 0; ++trial) {
      const change& drawn = changes()[random() % changes().size()];
      const std::size_t chosen = random() % moving;
      auto wrong = right;
      std::size_t nth = 0;
      bool changed = false;
      for (schedule::rank_plan& plan : wrong) {
        edit_steps(plan, [&](step& s) {
          if (s.what != action::none && nth++ == chosen) changed = drawn.make(s);
        });
      }
      if (!changed) continue;
      ++tried;
      EXPECT_FALSE(schedule::check_schedule(wrong).ok()) << c.name << ": " << drawn.name;
    }
  };
  each_case(operators(), 2, try_some);
  each_case(collectives(), 2, try_some);
  EXPECT_GT(tried, 500);
}

// A room of a ring holds tile after tile within an epoch: what a tile leaves out is there from the
// one before, finished and of this epoch.
TEST(schedules, with_a_tile_that_leaves_out_a_row_are_wrong) {
  int tried = 0;
  each_case(operators(), 2, [&](const schedule_case& c) {
    const auto right = c.plans();
    std::size_t count = 0;
    for (std::size_t chosen = 0; chosen == 0 || chosen < count; ++chosen) {
      auto wrong = right;
      count = 0;
      for (schedule::rank_plan& plan : wrong) {
        edit_steps(plan, [&](step& s) {
          if (s.what == action::multiply && s.to.of == operand::outbox && count++ == chosen)
            --s.rows;
        });
      }
      if (count == 0) continue;
      ++tried;
      EXPECT_FALSE(schedule::check_schedule(wrong).ok()) << c.name << ": the " << chosen << "th";
    }
  });
  EXPECT_GT(tried, 20);
}

// Bulk patterns order whole kernels: no step that computes or moves data hands it to another rank,
// or waits for data of one. With a library barriers do all of it; senders of kernels may wait until
// they are allowed to write to a rank.
TEST(schedules, of_bulk_patterns_hand_over_no_single_tiles) {
  int looked_at = 0;
  const auto look = [&](const schedule_case& c) {
    if (c.name.find("bulk_") == std::string::npos) return;
    ++looked_at;
    const bool library = c.name.find("bulk_library") != std::string::npos;
    for (const schedule::rank_plan& plan : c.plans()) {
      schedule::each_step(plan, [&](const schedule::step_position& at, const step& s) {
        if (s.what == action::none) return;
        schedule::each_verb(s, [&](channel_verb verb, const room& r) {
          if (verb == channel_verb::reserve && !library) return;
          // Workers of a rank may tell each other.
          EXPECT_EQ(r.producer, r.consumer)
              << c.name << ": " << schedule::describe(plan, at) << ": " << schedule::name_of(verb);
        });
      });
    }
  };
  for (const int ranks : {2, 3}) {
    each_case(operators(), ranks, look);
    each_case(collectives(), ranks, look);
    each_case(std::vector{spec<flash_decode>, spec<merge_partial_attention>}, ranks, look);
  }
  EXPECT_GT(looked_at, 10);
}

// Data for several ranks goes to the nearest rank first, so that all links are busy and no rank
// receives from all at once.
TEST(schedules, of_all_operators_send_to_the_nearest_first) {
  int looked_at = 0;
  const auto look = [&](const schedule_case& c) {
    for (const schedule::rank_plan& plan : c.plans()) {
      place last;
      schedule::step_position before;
      int hop = 0;
      schedule::each_step(plan, [&](const schedule::step_position& at, const step& s) {
        if (s.what != action::copy || s.to.rank == plan.rank() || s.from.rank != plan.rank())
          return;
        const int next = (s.to.rank - plan.rank() + plan.world()) % plan.world();
        const bool same = at.epoch == before.epoch && at.who.kernel == before.who.kernel &&
                          at.who.worker == before.who.worker && last.of == s.from.of &&
                          last.row == s.from.row && last.col == s.from.col;
        if (same) {
          ++looked_at;
          EXPECT_GT(next, hop) << c.name << ": " << schedule::describe(plan, at);
        }
        hop = next;
        last = s.from;
        before = at;
      });
    }
  };
  each_case(operators(), 3, look);
  each_case(std::vector{spec<flash_decode>, spec<merge_partial_attention>}, 3, look);
  EXPECT_GT(looked_at, 10);
}

}  // namespace
}  // namespace untax::test
