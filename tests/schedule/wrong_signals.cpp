#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/schedule/broken.hpp"
#include "tests/schedule/exchange.hpp"
#include "tests/schedule/relay.hpp"

// Schedules with wrong signals have to be refused, and the text has to say what is wrong.

namespace untax::test {
namespace {

using schedule::rank_plan;

std::vector<rank_plan> two_ranks(layout how = layout::one_worker) {
  return exchange_plans(2, 2, 2, how);
}

TEST(check_signals, refuses_an_acquire_without_publish) {
  auto plans = two_ranks();
  edit_steps(plans[1], [](step& s) { s.publish = {}; });
  expect_problem(plans, {"rank 0, kernel exchange, worker 0, epoch 1",
                         "acquire of room 1 (rank 1 to rank 0, use 1)",
                         "rank 1 has no publish for that", "nobody raises the counter that far"});
}

TEST(check_signals, refuses_a_wrong_use) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) { s.acquire.use += 1; });
  expect_problem(plans, {"rank 0", "epoch 3", "acquire of room 1 (rank 1 to rank 0, use 3)",
                         "to reach 3", "nobody raises the counter that far"});
}

TEST(check_signals, refuses_to_wait_for_the_next_use) {
  auto plans = two_ranks();
  // The signal exists, but rank 1 gives it after a room that rank 0 frees after this wait.
  for (step& s : plans[0].steps({0, 0}, 1)) s.acquire.use += 1;
  expect_problem(plans, {"deadlock", "cannot acquire room 1 (rank 1 to rank 0, use 2)",
                         "cannot acquire room 2 (rank 0 to rank 1, use 1)",
                         "needs rank 0, kernel exchange, worker 0, epoch 2"});
}

TEST(check_signals, refuses_a_wrong_counter) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) { s.acquire.ready = 0; });
  expect_problem(plans, {"waits for counter 0 of rank 0", "has no publish for that"});
}

TEST(check_signals, refuses_a_reserve_without_retire) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) { s.retire = {}; });
  expect_problem(plans,
                 {"rank 1, kernel exchange, worker 0, epoch 3",
                  "reserve of room 1 (rank 1 to rank 0, use 2)", "rank 0 has no retire for that"});
}

TEST(check_signals, refuses_a_reserve_that_one_reader_does_not_answer) {
  auto plans = two_ranks();
  edit_steps(plans[1], [](step& s) { s.reserve.readers = 2; });
  expect_problem(plans, {"reserve of room 1", "waits for counter 5 of rank 1"});
}

TEST(check_signals, refuses_two_writers_of_a_counter) {
  auto plans = two_ranks(layout::two_workers);
  edit_programs(plans[0], [&](std::vector<step>& steps) {
    if (steps.front().what == action::multiply)
      steps.front().publish = plans[0].steps({0, 0}, 1).front().publish;
  });
  expect_problem(plans, {"counter 0 of rank 1 has two writers"});
}

TEST(check_signals, refuses_a_counter_that_falls) {
  auto plans = two_ranks();
  std::swap(plans[0].steps({0, 0}, 1).front().publish, plans[0].steps({0, 0}, 3).front().publish);
  expect_problem(plans, {"counter 0 of rank 1 is lowered"});
}

// Where epochs differ, a counter may have another writer in the next one, but not before the last
// one has raised it: neither if the ranks happen to be executed in that order, nor if they do not.
TEST(check_signals, refuses_a_writer_that_may_overtake_the_last_one) {
  for (const relay_senders senders : {relay_senders{0, 1}, relay_senders{1, 0}}) {
    const auto step_of = [&](std::uint64_t epoch) {
      return fmt::format("rank {}, kernel relay, worker 0, epoch {}, step 0 (copy)",
                         senders.of(epoch), epoch);
    };
    expect_problem(relay_plans(senders, false),
                   {"counter 0 of rank 2 may be raised to 2 before it is raised to 1: ", step_of(1),
                    "has to happen before", step_of(2)});
  }
}

TEST(check_signals, accepts_ordered_writers_of_one_counter) {
  for (const relay_senders senders : {relay_senders{0, 1}, relay_senders{1, 0}}) {
    const auto report = schedule::check_schedule(relay_plans(senders, true));
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }
}

TEST(check_signals, refuses_a_signal_given_twice) {
  auto plans = two_ranks();
  edit_programs(plans[0], [](std::vector<step>& steps) {
    steps.push_back({.publish = steps.front().publish});
  });
  expect_problem(plans, {"counter 0 of rank 1 is raised twice to the same value"});
}

TEST(check_signals, refuses_counters_beyond_the_last) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.publish.named()) s.publish.ready = 100;
  });
  expect_problem(plans, {"publish of room", "ready counter 100 is not below counters() = 8"});
}

TEST(check_signals, refuses_free_counters_beyond_the_last) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (!s.reserve.named()) return;
    s.reserve.free = 7;
    s.reserve.readers = 2;
  });
  expect_problem(plans, {"reserve of room", "free counters 7 and following for 2 readers"});
}

TEST(check_signals, accepts_rooms_without_retire) {
  auto plans = exchange_plans(2, 2, 2, layout::one_worker, 1);
  for (rank_plan& plan : plans) {
    edit_steps(plan, [](step& s) {
      for (room* r : {&s.reserve, &s.publish, &s.acquire}) {
        r->free = -1;
        r->readers = 0;
      }
      s.retire = {};
    });
  }
  EXPECT_TRUE(schedule::check_schedule(plans).ok());
}

TEST(check_signals, refuses_unknown_ranks) {
  for (const int nobody : {-1, 2}) {
    auto plans = two_ranks();
    edit_steps(plans[0], [nobody](step& s) {
      if (s.acquire.named()) s.acquire.producer = nobody;
    });
    expect_problem(plans, {"acquire of room 1", "there are only ranks 0..1"});
    plans = two_ranks();
    edit_steps(plans[0], [nobody](step& s) {
      if (s.publish.named()) s.publish.consumer = nobody;
    });
    expect_problem(plans, {"publish of room 0", "there are only ranks 0..1"});
  }
}

TEST(check_signals, refuses_a_verb_of_the_wrong_side) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.publish.named()) s.acquire = s.publish;
  });
  expect_problem(plans, {"acquire of room 0", "only its consumer may do that"});
}

TEST(check_signals, shows_the_cycle_of_waits) {
  auto plans = two_ranks();
  for (rank_plan& plan : plans) {
    // Computing first, each waits for what the other sends afterwards.
    edit_programs(plan, [](std::vector<step>& steps) {
      std::rotate(steps.begin(), steps.begin() + 1, steps.end());
    });
  }
  expect_problem(
      plans, {"deadlock",
              "rank 0, kernel exchange, worker 0, epoch 1, step 2 (multiply) cannot acquire room 1",
              "needs rank 1, kernel exchange, worker 0, epoch 1, step 4 (copy)",
              "rank 1, kernel exchange, worker 0, epoch 1, step 0 (multiply) cannot acquire room 0",
              "needs rank 0, kernel exchange, worker 0, epoch 1, step 4 (copy)"});
}

TEST(check_signals, sees_that_a_later_stage_cannot_help_an_earlier_one) {
  auto plans = two_ranks(layout::two_stages);
  // The sender of rank 0 waits for a signal that its own second stage would give.
  const room flag{.producer = 0, .consumer = 0, .number = 0, .ready = 0, .use = 1};
  plans[0].steps({0, 0}, 1).front().acquire = flag;
  plans[0].steps({1, 0}, 1).front().publish = flag;
  expect_problem(
      plans,
      {"deadlock", "rank 0, kernel send, worker 0, epoch 1, step 0 (copy) cannot acquire room 0",
       "needs rank 0, kernel compute"});
}

}  // namespace
}  // namespace untax::test
