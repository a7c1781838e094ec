// The accesses and waits that the checkers derive from a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "engines/schedule/need.hpp"
#include "engines/schedule/walk.hpp"
#include "tests/schedule/broken.hpp"
#include "tests/schedule/exchange.hpp"

namespace untax::test {
namespace {

using schedule::access;
using schedule::need;
using schedule::rank_plan;

using touched = std::tuple<operand, std::int64_t, std::int64_t, bool>;  // rows, columns, written

std::vector<touched> accesses_of(const step& s) {
  std::vector<touched> toucheds;
  schedule::each_access(
      s, [&](const access& a) { toucheds.emplace_back(a.at.of, a.rows, a.cols, a.writes); });
  return toucheds;
}

TEST(accesses, of_each_action) {
  const step s{.rows = 3,
               .cols = 5,
               .depth = 7,
               .from = {operand::a, 0},
               .weights = {operand::b, 0},
               .to = {operand::outbox, 0}};
  const auto doing = [&](action what) {
    step changed = s;
    changed.what = what;
    return accesses_of(changed);
  };
  using list = std::vector<touched>;
  constexpr auto statistics = attention_statistics;
  EXPECT_EQ(doing(action::none), list());
  EXPECT_EQ(doing(action::copy), (list{{operand::a, 3, 5, false}, {operand::outbox, 3, 5, true}}));
  EXPECT_EQ(
      doing(action::multiply),
      (list{{operand::a, 3, 7, false}, {operand::b, 5, 7, false}, {operand::outbox, 3, 5, true}}));
  EXPECT_EQ(doing(action::add), (list{{operand::a, 3, 5, false}}));
  EXPECT_EQ(doing(action::store), (list{{operand::a, 3, 5, false}, {operand::outbox, 3, 5, true}}));
  EXPECT_EQ(doing(action::attend), (list{{operand::a, 3, 5, false},
                                         {operand::b, 1, 1, false},
                                         {operand::outbox, 3, 5 + statistics, true}}));
  // A merge reads partial results with their statistics; its own result has them, too, unless it is
  // in c.
  EXPECT_EQ(doing(action::merge), (list{{operand::a, 3 * 7, 5 + statistics, false},
                                        {operand::outbox, 3, 5 + statistics, true}}));
  step into_c = s;
  into_c.what = action::merge;
  into_c.to.of = operand::c;
  EXPECT_EQ(accesses_of(into_c),
            (list{{operand::a, 3 * 7, 5 + statistics, false}, {operand::c, 3, 5, true}}));
}

TEST(accesses, of_a_reduction_at_all_ranks_and_at_one) {
  step s{.what = action::reduce,
         .rows = 2,
         .cols = 4,
         .depth = 3,
         .from = {operand::inbox, 1, 10, 6},
         .weights = {operand::a, 1, 0, 9},
         .to = {operand::c, 1, 0, 9}};
  std::vector<std::tuple<operand, int, std::int64_t, std::int64_t, bool>> all;
  const auto look = [&](const access& a) {
    EXPECT_EQ(a.rows, 2);
    EXPECT_EQ(a.cols, 4);
    all.emplace_back(a.at.of, a.at.rank, a.at.row, a.at.col, a.writes);
  };
  schedule::each_access(s, look);
  decltype(all) wanted = {{operand::inbox, 1, 10, 6, false},
                          {operand::a, 1, 0, 9, false},
                          {operand::inbox, 1, 14, 6, false},
                          {operand::c, 1, 0, 9, true}};
  EXPECT_EQ(all, wanted);
  all.clear();
  s.everywhere = true;
  schedule::each_access(s, look);
  wanted.pop_back();
  for (int rank = 0; rank < 3; ++rank) wanted.emplace_back(operand::c, rank, 0, 9, true);
  EXPECT_EQ(all, wanted);
}

std::vector<std::tuple<channel_verb, int, int, std::uint64_t>> needs_of(const step& s) {
  std::vector<std::tuple<channel_verb, int, int, std::uint64_t>> all;
  schedule::each_need(s, [&](channel_verb verb, const need& n) {
    all.emplace_back(verb, n.rank, n.index, n.value);
  });
  return all;
}

TEST(needs, of_rooms_flags_and_rooms_without_credit) {
  using list = decltype(needs_of(step{}));
  const room free_room{.producer = 4,
                       .consumer = 2,
                       .number = 0,
                       .ready = 9,
                       .free = 0,  // a counter as good as any other
                       .readers = 3,
                       .use = 5};
  EXPECT_EQ(needs_of(step{.reserve = free_room}), (list{{channel_verb::reserve, 4, 0, 4},
                                                        {channel_verb::reserve, 4, 1, 4},
                                                        {channel_verb::reserve, 4, 2, 4}}));
  EXPECT_EQ(needs_of(step{.acquire = free_room}), (list{{channel_verb::acquire, 2, 9, 5}}));
  room first = free_room;
  first.use = 1;
  EXPECT_EQ(needs_of(step{.reserve = first}), list()) << "free before its first use";
  first.credit = 0;
  EXPECT_EQ(needs_of(step{.reserve = first}).size(), 3U) << "its consumer has to open it";
  room flag = free_room;
  flag.free = -1;
  EXPECT_EQ(needs_of(step{.reserve = flag}), list()) << "nobody says that a flag is free";
  EXPECT_EQ(needs_of(step{.publish = free_room, .retire = free_room}), list());
  EXPECT_EQ(needs_of(step{}), list());
}

// Nothing lies nowhere: a rectangle without rows, or without columns, is within any matrix.
TEST(check_rectangles, lets_empty_ones_lie_anywhere) {
  for (const auto& [rows, cols] : {std::pair<int, int>{0, 2}, {1, 0}, {0, 0}}) {
    auto plans = exchange_plans(2, 2, 2, layout::one_worker);
    edit_programs(plans[0], [&, rows = rows, cols = cols](std::vector<step>& steps) {
      steps.push_back(step{.what = action::copy,
                           .rows = rows,
                           .cols = cols,
                           .from = {operand::a, 0, 99, 99},
                           .to = {operand::inbox, 1, 99, 99}});
    });
    const auto report = schedule::check_schedule(plans);
    EXPECT_TRUE(report.ok()) << rows << " x " << cols << ": " << report.problems.front();
  }
}

// Of three ranks two wait for each other and the third for one of them: it is no part of the cycle.
TEST(check_signals, shows_the_cycle_alone) {
  auto plans = exchange_plans(3, 3, 2, layout::one_worker);
  for (const std::size_t rank : {1U, 2U}) {
    edit_programs(plans[rank], [](std::vector<step>& steps) {
      // First what it computes from what comes, then what it sends.
      std::rotate(steps.begin(), steps.begin() + 2, steps.end());
    });
  }
  const auto report = schedule::check_schedule(plans);
  ASSERT_FALSE(report.ok());
  const std::string& text = report.problems.back();
  EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
  for (const int rank : {1, 2}) {
    EXPECT_NE(text.find(fmt::format("\n  rank {}, ", rank)), std::string::npos) << text;
  }
  EXPECT_EQ(text.find("\n  rank 0, "), std::string::npos) << text;
}

}  // namespace
}  // namespace untax::test
