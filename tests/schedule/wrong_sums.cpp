#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <untax/tile/shard.hpp>

#include "ops/all_reduce_norm/protocol.hpp"
#include "ops/collectives_common/direct_reduce.hpp"
#include "ops/collectives_common/reduce_protocol.hpp"
#include "ops/gemm_reduce_common/protocol.hpp"
#include "tests/schedule/broken.hpp"

// Sums over ranks have to be of all ranks, each once, in rank order.

namespace untax::test {
namespace {

using schedule::operand_extents;
using schedule::rank_plan;

constexpr pattern gemm_patterns[] = {pattern::fused_sequential, pattern::fused_specialized,
                                     pattern::producer_consumer, pattern::bulk_synchronous};

std::vector<rank_plan> gemm_plans(pattern how, reduce_target target = reduce_target::owner,
                                  int phases = 1) {
  const int world = 3;
  const summed_gemm problem{.m = 6, .n = 8, .k = 24, .target = target};
  std::vector<rank_plan> plans;
  for (int rank = 0; rank < world; ++rank) {
    const gemm_reduce_protocol p(problem, {.world = world,
                                           .rank = rank,
                                           .how = how,
                                           .workers = 1,
                                           .senders = 1,
                                           .phases = phases,
                                           .tile_m = 2,
                                           .tile_n = 4});
    const std::int64_t rows =
        target == reduce_target::owner ? sharding{problem.m, world}.of(rank).size : problem.m;
    plans.emplace_back(program(p),
                       operand_extents{{problem.m, 8}, {problem.n, 8}, {rows, problem.n}}, 4);
  }
  return plans;
}

std::vector<rank_plan> norm_plans(int phases) {
  std::vector<rank_plan> plans;
  for (int rank = 0; rank < 2; ++rank) {
    const all_reduce_norm_protocol p({.tokens = 4, .hidden = 3}, {.world = 2,
                                                                  .rank = rank,
                                                                  .how = pattern::fused_sequential,
                                                                  .workers = 1,
                                                                  .phases = phases,
                                                                  .tile_m = 1});
    plans.emplace_back(program(p), operand_extents{{4, 3}, {}, {4, 6}}, 4);
  }
  return plans;
}

template <class Protocol>
std::vector<rank_plan> reduce_scatter_plans() {
  std::vector<rank_plan> plans;
  for (int rank = 0; rank < 3; ++rank) {
    const Protocol p(9, reduction::sum, reduce_target::owner,
                     {.world = 3, .rank = rank, .chunk = 3});
    plans.emplace_back(program(p), operand_extents{{1, 9}, {}, {1, 3}}, 4);
  }
  return plans;
}

/// Calls `change(steps, i)` for each place where addend `source` of a sum is added; `i` may be
/// moved.
template <class Change>
void edit_addends(rank_plan& plan, int source, const Change& change) {
  edit_programs(plan, [&](std::vector<step>& steps) {
    int next = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].what != action::add) continue;
      next = steps[i].first ? 0 : next + 1;
      if (next == source) change(steps, i);
    }
  });
}

template <class Change>
void expect_problem_of_each_gemm(int source, const Change& change,
                                 const std::vector<std::string>& words) {
  const auto expect = [&](std::vector<rank_plan> plans) {
    const auto report = schedule::check_schedule(plans);
    EXPECT_TRUE(report.ok()) << report.problems.front();
    edit_addends(plans[0], source, change);
    expect_problem(plans, words);
  };
  for (const pattern how : gemm_patterns) {
    SCOPED_TRACE(name_of(how));
    expect(gemm_plans(how));
    for (const int phases : {1, 2}) expect(gemm_plans(how, reduce_target::everywhere, phases));
  }
}

void leave_out(std::vector<step>& steps, std::size_t& i) {
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
  --i;
}

TEST(check_sums, refuses_an_addend_left_out) {
  expect_problem_of_each_gemm(
      1, leave_out,
      {"rank 0",
       "(add) combines row 0, column 0 of the product of rank 0 with row 0, column 0 of "
       "the product of rank 2: each rank is taken once, in rank order, and next is 1"});
  expect_problem_of_each_gemm(
      2, leave_out,
      {"rank 0", "(store) puts row 0, column 0 of the product of ranks 0..1", "of c of rank ",
       "where the sum of all ranks belongs"});
  const auto begin_with_the_next = [](std::vector<step>& steps, std::size_t& i) {
    steps[i + 1].first = true;
    steps.erase(steps.begin() +
                static_cast<std::ptrdiff_t>(i));  // it is not seen as the first again
  };
  expect_problem_of_each_gemm(
      0, begin_with_the_next,
      {"rank 0", "(store) puts row 0, column 0 of the product of ranks 1..2 at", "of c of rank ",
       "where the sum of all ranks belongs"});
}

TEST(check_sums, refuses_an_addend_taken_twice) {
  const auto instead_of_the_last = [](std::vector<step>& steps, std::size_t& i) {
    steps[i].from = steps[i + 1].from;
    steps[i].acquire = steps[i + 1].acquire;
  };
  expect_problem_of_each_gemm(1, instead_of_the_last,
                              {"rank 0", "with row 0, column 0 of the product of rank 2: ",
                               "in rank order, and next is 1"});
  const auto once_more = [](std::vector<step>& steps, std::size_t& i) {
    const step again = steps[i];
    ++i;
    steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(i), again);
    ++i;
  };
  expect_problem_of_each_gemm(2, once_more,
                              {"rank 0",
                               "(add) combines row 0, column 0 of the product of all "
                               "ranks with row 0, column 0 of the product of rank 2: ",
                               "in rank order, and none is left"});
}

TEST(check_sums, refuses_addends_in_another_order) {
  const auto exchange = [](std::vector<step>& steps, std::size_t& i) {
    std::swap(steps[i], steps[i + 1]);
  };
  expect_problem_of_each_gemm(
      1, exchange, {"rank 0", "of the product of rank 2: ", "in rank order, and next is 1"});
}

TEST(check_sums, refuses_a_reduction_of_fewer_ranks) {
  const auto expect = [](const std::vector<rank_plan>& right) {
    EXPECT_TRUE(schedule::check_schedule(right).ok());
    for (const int depth : {1, 2}) {
      auto plans = right;
      edit_steps(plans[0], [depth](step& s) {
        if (s.what == action::reduce) s.depth = depth;
      });
      expect_problem(plans, {"rank 0", "(reduce) puts row 0, column 0 of a of ",
                             depth == 1 ? "rank 0 at" : "ranks 0..1 at",
                             "row 0, column 0 of c of rank 0, where the sum of all ranks belongs"});
    }
  };
  expect(reduce_scatter_plans<reduce_protocol>());
  expect(reduce_scatter_plans<direct_reduce>());
}

TEST(check_sums, refuses_normalised_rows_in_each_others_places) {
  for (const int phases : {1, 2}) {
    auto plans = norm_plans(phases);
    EXPECT_TRUE(schedule::check_schedule(plans).ok());
    edit_programs(plans[0], [](std::vector<step>& steps) {
      step* other = nullptr;
      for (step& s : steps) {
        if (s.what != action::normalise) continue;
        if (other != nullptr) std::swap(other->to.row, s.to.row);
        other = other == nullptr ? &s : nullptr;
      }
    });
    expect_problem(plans, {"rank 0", "(normalise) puts row ", " of a of all ranks at row ",
                           "of c of rank 0, where row ", " of a of all ranks belongs"});
  }
}

TEST(check_sums, refuses_to_normalise_an_incomplete_sum) {
  for (const int phases : {1, 2}) {
    auto plans = norm_plans(phases);
    edit_addends(plans[0], 1, leave_out);
    expect_problem(plans, {"rank 0", "(normalise) puts row 0, column 0 of a of rank 0",
                           "of c of rank ", "where the sum of all ranks belongs"});
  }
}

}  // namespace
}  // namespace untax::test
