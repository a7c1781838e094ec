#include "tests/litmus/store_buffering.hpp"

#include <gtest/gtest.h>

#include "tests/litmus/on_model.hpp"

namespace untax::litmus {
namespace {

TEST(store_buffering_model, both_may_read_0) {
  modelled<store_buffering<model_memory>> body;
  const auto found =
      model::search(body, {.how = model::strategy::exhaustive, .executions = 100'000});
  EXPECT_TRUE(found.ok) << found.failure;
  EXPECT_TRUE(found.complete);
  for (const char* outcome : {"0 0", "0 1", "1 0", "1 1"}) {
    EXPECT_TRUE(body.outcomes().contains(outcome)) << outcome;
  }
}

TEST(store_buffering_model, mutual_exclusion_built_on_it_is_caught) {
  const auto found = explore_all<mutual_exclusion<model_memory>>();
  EXPECT_NE(found.failure.find("race"), std::string::npos) << found.failure;
}

}  // namespace
}  // namespace untax::litmus
