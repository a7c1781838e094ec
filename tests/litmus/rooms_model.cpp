#include "tests/litmus/rooms.hpp"

#include <gtest/gtest.h>

#include "tests/litmus/on_model.hpp"

namespace untax::litmus {
namespace {

using relaxed_raise = basic_model_memory<weakening::relaxed_raise>;
using relaxed_load = basic_model_memory<weakening::relaxed_load>;

template <class Body>
void expect_caught(const char* what) {
  const auto result = explore_some<Body>();
  EXPECT_FALSE(result.ok) << what << " survived " << result.executions << " executions";
}

TEST(credit_return_model, a_room_is_filled_again_only_after_it_was_read) {
  const auto result = explore_bounded<credit_return<model_memory>>(4);
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
  EXPECT_TRUE(explore_some<credit_return<model_memory>>().ok);
}

TEST(credit_return_model, needs_every_verb) {
  expect_caught<credit_return<model_memory, without::reserve>>("a producer that does not reserve");
  expect_caught<credit_return<model_memory, without::acquire>>("a consumer that does not acquire");
  expect_caught<credit_return<model_memory, without::publish>>("a producer that does not publish");
  expect_caught<credit_return<model_memory, without::retire>>("a consumer that does not retire");
}

TEST(credit_return_model, needs_release_and_acquire) {
  expect_caught<credit_return<relaxed_raise>>("a relaxed signal");
  expect_caught<credit_return<relaxed_load>>("a relaxed wait");
}

TEST(epoch_reuse_model, two_sets_are_used_in_turn) {
  const auto result = explore_bounded<epoch_reuse<model_memory>>(4);
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
  EXPECT_TRUE(explore_some<epoch_reuse<model_memory>>().ok);
}

TEST(epoch_reuse_model, needs_every_verb) {
  expect_caught<epoch_reuse<model_memory, without::reserve>>("a producer that does not reserve");
  expect_caught<epoch_reuse<model_memory, without::acquire>>("a consumer that does not acquire");
  expect_caught<epoch_reuse<model_memory, without::publish>>("a producer that does not publish");
  expect_caught<epoch_reuse<model_memory, without::retire>>("a consumer that does not retire");
}

TEST(epoch_reuse_model, needs_release_and_acquire) {
  expect_caught<epoch_reuse<relaxed_raise>>("a relaxed signal");
  expect_caught<epoch_reuse<relaxed_load>>("a relaxed wait");
}

}  // namespace
}  // namespace untax::litmus
