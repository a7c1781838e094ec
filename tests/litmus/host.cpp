#include <gtest/gtest.h>

#include <random>

#include <untax/memory/host_memory.hpp>

#include "tests/litmus/coherence.hpp"
#include "tests/litmus/message_passing.hpp"
#include "tests/litmus/on_threads.hpp"
#include "tests/litmus/rooms.hpp"
#include "tests/litmus/store_buffering.hpp"

// The litmus bodies on the processor at hand. A machine may show fewer outcomes than the model
// allows, never more.

namespace untax::litmus {
namespace {

template <class Body>
class litmus_on_host : public testing::Test {};

using bodies = testing::Types<message_passing<host_memory>, isa2<host_memory>, wrc<host_memory>,
                              corr<host_memory>, late_signal<host_memory>,
                              credit_return<host_memory>, epoch_reuse<host_memory>>;
TYPED_TEST_SUITE(litmus_on_host, bodies, );

TYPED_TEST(litmus_on_host, reaches_no_forbidden_outcome) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const observed seen = run_on_threads<TypeParam>(seed);
  EXPECT_GT(seen.executions, 0U);
  EXPECT_EQ(seen.forbidden, 0U);
}

// Both may read 0, and on most machines do. Whether it happens within the time of a test is luck,
// so it is recorded and not expected; the model shows that it may (store_buffering_model.cpp).
TEST(store_buffering_on_host, both_outcomes_are_accepted) {
  const observed seen = run_on_threads<store_buffering<host_memory>>(std::random_device{}());
  EXPECT_GT(seen.executions, 0U);
  const auto both_read_0 = seen.outcomes.find("0 0");
  RecordProperty("executions", static_cast<int>(seen.executions));
  RecordProperty("both_read_0",
                 both_read_0 == seen.outcomes.end() ? 0 : static_cast<int>(both_read_0->second));
}

}  // namespace
}  // namespace untax::litmus
