#include "tests/litmus/store_buffering.hpp"

#include <gtest/gtest.h>

#include "tests/litmus/on_model.hpp"

namespace untax::litmus {
namespace {

TEST(store_buffering_model, both_threads_may_read_0) {
  modelled<store_buffering<model_memory>> body;
  const auto result =
      model::search(body, {.how = model::strategy::exhaustive, .executions = 100'000});
  EXPECT_TRUE(result.ok) << result.failure;
  EXPECT_TRUE(result.complete);
  for (const char* outcome : {"0 0", "0 1", "1 0", "1 1"}) {
    EXPECT_TRUE(body.outcomes().contains(outcome)) << outcome;
  }
}

TEST(store_buffering_model, mutual_exclusion_built_on_it_is_caught) {
  const auto result = explore_all<mutual_exclusion<model_memory>>();
  EXPECT_NE(result.failure.find("race"), std::string::npos) << result.failure;
}

}  // namespace
}  // namespace untax::litmus
