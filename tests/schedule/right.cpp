#include <gtest/gtest.h>

#include <string>

#include "engines/schedule/check.hpp"
#include "tests/schedule/exchange.hpp"

// Schedules that are right have to be proved so.

namespace untax::test {
namespace {

TEST(check_schedule, proves_every_right_exchange) {
  for (int world = 1; world <= 5; ++world) {
    for (int senders = 0; senders <= world; ++senders) {
      for (int sets = 1; sets <= 3; ++sets) {
        for (const layout how : {layout::one_worker, layout::two_workers, layout::two_stages}) {
          const auto plans = exchange_plans(world, senders, sets, how, 5);
          const auto report = schedule::check_schedule(plans);
          ASSERT_TRUE(report.ok())
              << "world " << world << ", senders " << senders << ", sets " << sets << ", layout "
              << static_cast<int>(how) << ": " << report.problems.front();
        }
      }
    }
  }
}

TEST(check_schedule, counts_executed_steps) {
  const auto report = schedule::check_schedule(exchange_plans(2, 2, 2, layout::one_worker, 3));
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.ranks, 2);
  EXPECT_EQ(report.steps, 2U * 3U * 5U);
  // Two acquires an epoch; the only reserves that wait are those of the third epoch.
  EXPECT_EQ(report.waits, 2U * (3U * 2U + 1U));
}

TEST(check_schedule, accepts_ranks_that_do_nothing) {
  EXPECT_TRUE(schedule::check_schedule({}).ok());
  EXPECT_TRUE(schedule::check_schedule(exchange_plans(3, 0, 2, layout::two_workers)).ok());
}

/// Of a rank that launches no kernel at all.
struct idle_protocol {
  [[nodiscard]] static constexpr int rank() { return 0; }
  [[nodiscard]] static constexpr int world() { return 1; }
  [[nodiscard]] static constexpr int kernels() { return 0; }
  [[nodiscard]] static constexpr kernel kernel_at(int) { return {}; }
  template <class Emit>
  static constexpr void program(int, int, std::uint64_t, Emit&&) {}
  [[nodiscard]] static constexpr int counters() { return 0; }
  [[nodiscard]] static constexpr extent inbox() { return {}; }
  [[nodiscard]] static constexpr extent outbox() { return {}; }
  [[nodiscard]] static constexpr extent tile_extent() { return {}; }
};

TEST(check_schedule, accepts_ranks_without_kernels) {
  const std::vector<schedule::rank_plan> plans(
      1, schedule::rank_plan(program(idle_protocol{}), {}, 3));
  EXPECT_TRUE(schedule::check_schedule(plans).ok());
  EXPECT_EQ(plans.front().lanes(), 0);
}

// With two sets and traffic both ways, a rank knows from a peer's next signal that its room has
// been read: the graph orders the next use without a reserve. With traffic one way it does not.
TEST(check_schedule, tells_which_verbs_order_anything) {
  const auto all_but_reserves = [](const schedule::step_position&, const step&, channel_verb verb) {
    return verb != channel_verb::reserve;
  };
  EXPECT_TRUE(
      schedule::check_schedule(exchange_plans(2, 2, 2, layout::one_worker), all_but_reserves).ok());
  EXPECT_FALSE(
      schedule::check_schedule(exchange_plans(2, 1, 2, layout::one_worker), all_but_reserves).ok());
  EXPECT_FALSE(
      schedule::check_schedule(exchange_plans(2, 2, 1, layout::one_worker), all_but_reserves).ok());
}

}  // namespace
}  // namespace untax::test
