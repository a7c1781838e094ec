// The cases of `untax bench locality`: kernels and orders that a GPU can replay, the same for the
// same seed.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/suites/locality.hpp"
#include "tests/locality/support.hpp"

namespace untax::bench {
namespace {

/// Each block once.
void expect_bijection(const locality::kernel& k, const locality::schedule& s) {
  EXPECT_EQ(std::set<int>(s.blocks.begin(), s.blocks.end()).size(), s.blocks.size());
  ASSERT_EQ(static_cast<int>(s.blocks.size()), k.blocks());
  EXPECT_EQ(*std::ranges::min_element(s.blocks), 0);
  EXPECT_EQ(*std::ranges::max_element(s.blocks), k.blocks() - 1);
}

TEST(replay, draws_kernels_that_run_for_milliseconds) {
  const auto drawn = replay_problems({.problems = 40, .seed = 5, .begin = {}, .progress = {}});
  const auto again = replay_problems({.problems = 40, .seed = 5, .begin = {}, .progress = {}});
  ASSERT_EQ(drawn.size(), 40U);
  std::set<std::string> names;
  int random = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const replay_problem& p = drawn[i];
    SCOPED_TRACE(p.name + ", " + p.order);
    EXPECT_EQ(p.name, again[i].name);
    EXPECT_EQ(p.sizes, again[i].sizes);
    EXPECT_EQ(p.order, again[i].order);
    const locality::kernel k = p.kernel(128);
    const locality::schedule s = p.schedule(k, 1);
    expect_bijection(k, s);
    EXPECT_EQ(s.blocks, p.schedule(k, 1).blocks);
    EXPECT_TRUE(s.way == order::direction::forward || s.way == order::direction::backward);
    EXPECT_FALSE(k.has_dependences());
    EXPECT_LE(replayed_bytes(k), 3e11);
    names.insert(p.name);
    random += p.order == "random" ? 1 : 0;
  }
  EXPECT_GE(names.size(), 6U);
  EXPECT_GE(random, 3);
  EXPECT_LE(random, 20);
  EXPECT_NE(replay_problems({.problems = 1, .seed = 6, .begin = {}, .progress = {}}).front().sizes,
            drawn.front().sizes);
}

TEST(replay, has_a_grid_of_all_kernels_whose_blocks_do_not_wait) {
  std::map<std::string, std::vector<std::string>> orders;
  for (const replay_problem& p : replay_problems({})) {
    SCOPED_TRACE(p.name + ", " + p.order);
    const locality::kernel k = p.kernel(128);
    expect_bijection(k, p.schedule(k, 1));
    EXPECT_LE(replayed_bytes(k), 3e11);
    orders[p.name].push_back(p.order);
  }
  for (const locality::named_text& built_in_kernel : locality::built_in_kernels()) {
    SCOPED_TRACE(built_in_kernel.name);
    if (locality::kernel_named(built_in_kernel.name, {}).has_dependences()) {
      EXPECT_EQ(orders.count(built_in_kernel.name), 0U);
      continue;
    }
    ASSERT_GE(orders[built_in_kernel.name].size(), 2U);
    EXPECT_EQ(orders[built_in_kernel.name][0], "as numbered");
    EXPECT_EQ(orders[built_in_kernel.name][1], "random");
  }
}

/// 4 blocks, each with a row of A at its first step, two tiles of B, and a tile of C at its last.
TEST(replay, counts_the_reads_of_blocks) {
  const locality::kernel k = locality::kernel::read(
      "title = t\naxis i = 4\nsteps = 2\n"
      "operand A = 4, 64, 2\noperand B = 64, 128, 4\noperand C = 4, 64, 2\n"
      "once A = i, 1, 0, 64\nread B = step * 32, 32, 0, 128\nwrite C = i, 1, 0, 64\n",
      "text", {});
  EXPECT_EQ(replayed_bytes(k), 4.0 * (64 * 2 + 2 * 32 * 128 * 4 + 64 * 2));
}

}  // namespace
}  // namespace untax::bench
