// The four verbs on counters: whose counter each raises, or waits for, and up to what.
#include <untax/flow/channel.hpp>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <untax/memory/host_memory.hpp>

namespace {

using untax::host_memory;
using untax::room;
using untax::wait_outcome;
using untax::wait_site;

/// Counters of some ranks. Notes which are asked for.
struct noted_table {
  std::map<std::pair<int, int>, std::uint64_t>* counters;
  std::vector<std::pair<int, int>>* asked;

  std::uint64_t& at(int rank, int index) const {
    asked->emplace_back(rank, index);
    return (*counters)[{rank, index}];
  }
};

/// A guard that gives up at once, and notes what was waited for.
struct impatient_guard {
  std::vector<wait_site> sites;

  wait_outcome look(const wait_site& site, std::uint64_t /*seen*/) {
    sites.push_back(site);
    return wait_outcome::timeout;
  }
  void leave() noexcept {}
  static bool due(untax::poll_count /*polls*/) { return true; }
};

class channels : public testing::Test {
 protected:
  std::map<std::pair<int, int>, std::uint64_t> counters;
  std::vector<std::pair<int, int>> asked;
  impatient_guard guard;
  untax::channel<host_memory, noted_table, impatient_guard> channel{
      "op", noted_table{&counters, &asked}, guard, 17};
  // Counter 0 is one as good as any other.
  room r{.producer = 3, .consumer = 5, .number = 8, .ready = 0, .free = 0, .readers = 2, .use = 4};
};

TEST_F(channels, raise_the_counter_that_the_other_side_waits_for) {
  channel.publish(r);
  EXPECT_EQ(counters, (std::map<std::pair<int, int>, std::uint64_t>{{{5, 0}, 4}}));
  counters.clear();
  channel.retire(r, 0);
  channel.retire(r, 1);
  EXPECT_EQ(counters, (std::map<std::pair<int, int>, std::uint64_t>{{{3, 0}, 4}, {{3, 1}, 4}}));
}

TEST_F(channels, wait_for_the_counter_that_the_other_side_raises) {
  EXPECT_EQ(channel.acquire(r), wait_outcome::timeout);
  ASSERT_EQ(guard.sites.size(), 1U);
  EXPECT_EQ(guard.sites[0].what, untax::verb::acquire);
  EXPECT_EQ(guard.sites[0].peer, 3);
  EXPECT_EQ(guard.sites[0].room, 8);
  EXPECT_EQ(guard.sites[0].expected, 4U);
  EXPECT_EQ(guard.sites[0].progress, 17U);
  counters[{5, 0}] = 4;
  EXPECT_EQ(channel.acquire(r), wait_outcome::ok);
  guard.sites.clear();
  EXPECT_EQ(channel.reserve(r), wait_outcome::timeout);
  ASSERT_EQ(guard.sites.size(), 1U) << "the first reader is enough to give up";
  EXPECT_EQ(guard.sites[0].what, untax::verb::reserve);
  EXPECT_EQ(guard.sites[0].peer, 5);
  EXPECT_EQ(guard.sites[0].expected, 3U);
  counters[{3, 0}] = 3;
  EXPECT_EQ(channel.reserve(r), wait_outcome::timeout) << "the second reader has not left";
  counters[{3, 1}] = 3;
  EXPECT_EQ(channel.reserve(r), wait_outcome::ok);
}

TEST_F(channels, touch_no_counter_of_a_flag) {
  r.free = -1;
  EXPECT_EQ(channel.reserve(r), wait_outcome::ok);
  channel.retire(r, 0);
  EXPECT_TRUE(asked.empty());
}

TEST_F(channels, find_rooms_free_before_their_first_use) {
  r.use = 1;
  EXPECT_EQ(channel.reserve(r), wait_outcome::ok);
  EXPECT_TRUE(asked.empty());
  r.credit = 0;  // unless the consumer has to open them
  EXPECT_EQ(channel.reserve(r), wait_outcome::timeout);
}

}  // namespace
