#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/schedule/broken.hpp"
#include "tests/schedule/exchange.hpp"

// Schedules that touch the wrong data, or at the wrong time, have to be refused.

namespace untax::test {
namespace {

using schedule::rank_plan;

std::vector<rank_plan> two_ranks(layout how = layout::one_worker) {
  return exchange_plans(2, 2, 2, how);
}

TEST(check_result, refuses_a_tile_completed_twice) {
  auto plans = two_ranks();
  edit_programs(plans[1], [](std::vector<step>& steps) {
    const auto own = steps.end() - 2;
    const std::vector<step> again(own, steps.end());
    steps.insert(steps.end(), again.begin(), again.end());
  });
  expect_problem(plans, {"rank 1", "(multiply) writes c of rank 1, rows 1..1, columns 0..1",
                         "has completed already"});
}

TEST(check_result, refuses_a_column_left_out) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.what == action::multiply) s.cols = 1;
  });
  expect_problem(
      plans,
      {"epoch 1 of rank 0 ends, and nobody has completed c of rank 0, rows 0..0, columns 1..1"});
}

TEST(check_result, refuses_a_part_of_k_left_out_or_taken_twice) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) { s.weights.col = 0; });
  expect_problem(plans, {"rank 0", "takes k = 0 twice"});
  plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.last) s.depth = 0;
  });
  expect_problem(plans, {"rank 0", "leaves out k = 1..1"});
}

TEST(check_result, refuses_a_chain_that_is_not_begun_or_not_ended) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) { s.first = false; });
  expect_problem(plans, {"continues a chain of multiplications that was not begun"});
  plans = two_ranks();
  edit_steps(plans[0], [](step& s) { s.last = false; });
  expect_problem(plans, {"begins a chain of multiplications before the last one ended"});
}

// A product is there to be read when its chain has ended, and ended there.
TEST(check_result, refuses_a_missing_product) {
  for (const bool into_c : {false, true}) {
    auto plans = two_ranks();
    edit_programs(plans[0], [into_c](std::vector<step>& steps) {
      const auto end = std::ranges::find_if(
          steps, [](const step& s) { return s.what == action::multiply && s.last; });
      if (!into_c) {
        (end - 1)->to = {operand::product, 0, 0, 0};
        end->to = {operand::product, 0, 0, 0};
      }
      const step reader{.what = action::copy,
                        .rows = 1,
                        .cols = 2,
                        .from = {operand::product, 0, 0, 0},
                        .to = {operand::inbox, 0, 0, 0}};
      steps.insert(into_c ? end + 1 : end, reader);
    });
    expect_problem(plans, {"rank 0", "reads a product that is not finished"});
  }
}

TEST(check_result, refuses_rows_that_one_rank_puts_elsewhere) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.what == action::multiply) s.to.row = 1 - s.to.row;
  });
  expect_problem(plans, {"(multiply) multiplies row 0, column 0 of a of rank"});
}

TEST(check_result, refuses_columns_of_b_that_one_step_puts_elsewhere) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.from.of != operand::inbox) return;
    s.cols = 1;
    s.weights.row = 1;
  });
  expect_problem(plans, {"multiplies row 1 of b into column 0 of c: elsewhere they lie 0 apart"});
}

TEST(check_result, accepts_copies_of_b) {
  auto plans = two_ranks();
  edit_programs(plans[0], [](std::vector<step>& steps) {
    // Rows of the inbox that receive nothing.
    steps.insert(steps.begin(), {.what = action::copy,
                                 .rows = 1,
                                 .cols = 2,
                                 .from = {operand::b, 0, 0, 0},
                                 .to = {operand::inbox, 0, 0, 0}});
  });
  const auto report = schedule::check_schedule(plans);
  EXPECT_TRUE(report.ok()) << report.problems.front();
}

TEST(check_rectangles, refuses_rectangles_outside_their_matrix) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.to.of == operand::inbox) s.to.row += 4;
  });
  expect_problem(
      plans,
      {"inbox of rank 1, rows 4..4, columns 0..1 is written outside the matrix, which is 4x2"});
}

TEST(check_rectangles, refuses_the_operands_of_others) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.from.of == operand::inbox) s.from = {operand::a, 1, 0, s.from.col};
  });
  expect_problem(plans, {"a of another rank cannot be reached"});
  plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.to.of == operand::inbox) s.to = {operand::a, 0, 0, 0};
  });
  expect_problem(plans, {"a belongs to the caller and must not be written"});
  for (const int nobody : {2, -2}) {
    plans = two_ranks();
    edit_steps(plans[0], [nobody](step& s) {
      if (s.to.of == operand::inbox) s.to.rank = nobody;
    });
    expect_problem(plans, {fmt::format("there is no rank {}", nobody)});
  }
}

TEST(check_rectangles, refuses_tiles_that_are_too_large) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.what == action::multiply) s.rows = 2;
  });
  expect_problem(plans, {"2x2 is larger than tile_extent() = 1x2"});
}

TEST(check_order, finds_a_read_that_nothing_orders) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) { s.acquire = {}; });
  expect_problem(plans, {"race: rank 0", "reads inbox of rank 0", "rank 1, kernel exchange",
                         "(copy) may still write it"});
}

TEST(check_order, finds_a_room_filled_while_it_is_read) {
  auto plans = exchange_plans(2, 1, 2, layout::one_worker);
  EXPECT_TRUE(schedule::check_schedule(plans).ok());
  edit_steps(plans[0], [](step& s) { s.reserve = {}; });
  expect_problem(
      plans,
      {"race: rank 1, kernel exchange, worker 0, epoch 1, step 0 (multiply) reads inbox of rank 1",
       "rank 0, kernel exchange, worker 0, epoch 3, step 0 (copy) may still write it"});
}

TEST(check_order, finds_data_of_another_epoch) {
  auto plans = two_ranks();
  edit_steps(plans[0], [](step& s) {
    if (s.from.of == operand::inbox) s.from.row = (s.from.row + 2) % 4;
  });
  expect_problem(plans, {"rank 0", "reads inbox of rank 0, rows 3..3",
                         "which nobody has written in this epoch"});
}

TEST(check_order, finds_stages_that_should_not_run_together) {
  auto plans = two_ranks(layout::two_workers);
  // The receiver of rank 0 reads, without asking, a row that its own other worker copies.
  edit_steps(plans[0], [](step& s) {
    if (s.to.of == operand::inbox) {
      s.to.rank = 0;
      s.publish = s.reserve = {};
    }
    if (s.from.of == operand::inbox) {
      s.from.row -= 1;
      s.acquire = s.retire = {};
    }
  });
  edit_steps(plans[1], [](step& s) {
    s.publish = s.reserve = s.acquire = s.retire = {};
    if (s.from.of == operand::inbox) s.from = {operand::a, 1, 0, s.from.col};
  });
  expect_problem(plans, {"race: rank 0, kernel exchange", "reads inbox of rank 0",
                         "rank 0, kernel exchange, worker 0"});
}

// A peer may write into a rank's c only after the caller has handed it over, and before the caller
// gets it back.
TEST(check_order, finds_an_access_while_the_caller_owns_the_memory) {
  std::vector<rank_plan> wider;
  for (int rank = 0; rank < 2; ++rank) {
    const exchange p(2, rank, 0, 2, layout::one_worker);
    wider.emplace_back(program(p), schedule::operand_extents{{1, 2}, {2, 2}, {2, 2}}, 3);
  }
  // Rank 0 computes a row of its own c and one of its neighbour's, and the other way round, without
  // signals.
  for (int rank = 0; rank < 2; ++rank) {
    edit_programs(wider[static_cast<std::size_t>(rank)], [&](std::vector<step>& steps) {
      auto for_peer = steps;
      for (step& s : for_peer) s.to = {operand::c, 1 - rank, 1, 0};
      steps.insert(steps.end(), for_peer.begin(), for_peer.end());
    });
  }
  expect_problem(wider, {"race: ", "c of rank 1", "the caller of rank 1"});
}

}  // namespace
}  // namespace untax::test
