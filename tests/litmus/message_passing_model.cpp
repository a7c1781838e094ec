#include "tests/litmus/message_passing.hpp"

#include <gtest/gtest.h>

#include "tests/litmus/on_model.hpp"

namespace untax::litmus {
namespace {

using relaxed_raise = basic_model_memory<weakening::relaxed_raise>;
using relaxed_load = basic_model_memory<weakening::relaxed_load>;

TEST(message_passing_model, a_thread_that_sees_the_flag_sees_the_data) {
  const auto result = explore_all<message_passing<model_memory>>();
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
}

TEST(message_passing_model, needs_release_and_acquire) {
  EXPECT_FALSE(explore_all<message_passing<relaxed_raise>>().ok);
  EXPECT_FALSE(explore_all<message_passing<relaxed_load>>().ok);
}

TEST(isa2_model, order_passes_through_a_third_rank) {
  const auto result = explore_bounded<isa2<model_memory>>(5);
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
}

TEST(isa2_model, needs_release_and_acquire) {
  EXPECT_FALSE(explore_all<isa2<relaxed_raise>>().ok);
  EXPECT_FALSE(explore_all<isa2<relaxed_load>>().ok);
}

TEST(wrc_model, a_flag_seen_by_one_rank_is_seen_by_ranks_that_acquire_from_it) {
  const auto result = explore_all<wrc<model_memory>>();
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
}

TEST(wrc_model, needs_release_and_acquire) {
  const auto without_release = explore_all<wrc<relaxed_raise>>();
  EXPECT_NE(without_release.failure.find("forbidden outcome 1 1 0"), std::string::npos)
      << without_release.failure;
  EXPECT_FALSE(explore_all<wrc<relaxed_load>>().ok);
}

}  // namespace
}  // namespace untax::litmus
