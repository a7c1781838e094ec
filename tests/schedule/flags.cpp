// Flags by which lanes of a rank wait for each other: a flag that orders makes all steps before it
// visible to the waiting lane; a flag that only makes wait does not.
#include <gtest/gtest.h>

#include "ops/common/device_schedule.hpp"

namespace untax::test {
namespace {

using schedule::lane_program;

/// A rank of which one lane copies A to its outbox and raises a flag, and another one, which
/// `awaits` the flag, copies from there to C. Returns the texts of the checker.
std::vector<std::string> problems(bool orders, bool awaits) {
  lane_program rank({.outbox = {1, 4}});
  const int flag = rank.add_flag(orders);
  rank.begin_kernel("both", 0, schedule::lane_work::sends);
  rank.add([=](std::uint64_t epoch, const program::sink& emit) {
    step s = lane_program::raises(0, flag, epoch);
    s.what = action::copy;
    s.rows = 1;
    s.cols = 4;
    s.from = {operand::a, 0, 0, 0};
    s.to = {operand::outbox, 0, 0, 0};
    emit(s);
  });
  rank.add([=](std::uint64_t epoch, const program::sink& emit) {
    step s = awaits ? lane_program::awaits(0, flag, epoch) : step{};
    s.what = action::copy;
    s.rows = 1;
    s.cols = 4;
    s.from = {operand::outbox, 0, 0, 0};
    s.to = {operand::c, 0, 0, 0};
    emit(s);
  });
  return check_lanes({rank}, {{{1, 4}, {}, {1, 4}}}, 1).problems;
}

TEST(flags, that_order_make_earlier_steps_visible) {
  EXPECT_TRUE(problems(true, true).empty()) << problems(true, true).front();
  EXPECT_FALSE(problems(true, false).empty());
}

TEST(flags, without_order_make_a_lane_wait_but_order_nothing) {
  EXPECT_FALSE(problems(false, true).empty());
}

TEST(flags, without_order_have_lower_numbers_than_ordering_ones) {
  lane_program rank({.counters = 3});
  const int waits = rank.add_flag(false);
  const int orders = rank.add_flag();
  EXPECT_EQ(waits, 3);
  EXPECT_EQ(orders, 4);
  EXPECT_EQ(rank.counters(), 5);
  EXPECT_TRUE(rank.orders(2)) << "a counter between ranks";
  EXPECT_FALSE(rank.orders(waits));
  EXPECT_TRUE(rank.orders(orders));
}

}  // namespace
}  // namespace untax::test
