#include "tests/litmus/coherence.hpp"

#include <gtest/gtest.h>

#include "tests/litmus/on_model.hpp"

namespace untax::litmus {
namespace {

template <class M>
class coherence_model : public testing::Test {};

using policies = testing::Types<model_memory, basic_model_memory<weakening::relaxed_raise>,
                                basic_model_memory<weakening::relaxed_load>>;
TYPED_TEST_SUITE(coherence_model, policies, );

TYPED_TEST(coherence_model, a_counter_is_never_seen_to_fall) {
  const auto result = explore_all<corr<TypeParam>>();
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
}

TYPED_TEST(coherence_model, a_late_signal_lowers_no_counter) {
  const auto result = explore_all<late_signal<TypeParam>>();
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
}

TEST(late_signal_model, needs_raising_to_be_a_maximum) {
  const auto result = explore_all<late_signal<basic_model_memory<weakening::plain_raise>>>();
  EXPECT_NE(result.failure.find("forbidden outcome 2 1"), std::string::npos) << result.failure;
}

}  // namespace
}  // namespace untax::litmus
