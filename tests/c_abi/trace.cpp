// Traces by the C ABI.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <vector>

#include <untax/trace/json.hpp>

#include "support.hpp"
#include "tests/temporary_file.hpp"

namespace {

using namespace c_test;

TEST(c_trace, has_operators_made_between_start_and_stop) {
  const untax_test::temporary_file file;
  expect_failure(untax_trace_start(nullptr), untax_invalid_argument, {"path is NULL"});
  expect_failure(untax_trace_stop(nullptr, nullptr), untax_invalid_argument, {"no trace"});
  EXPECT_OK(untax_trace_start(file.path().c_str()));
  expect_failure(untax_trace_start(file.path().c_str()), untax_invalid_argument, {"already"});
  run_ranks(2, [](untax_world* world, int) {
    untax_operator* op = nullptr;
    const untax_all_reduce_problem problem{sizeof problem, 64, untax_f32, untax_sum};
    ASSERT_EQ(untax_all_reduce_plan(world, &problem, nullptr, &op), untax_ok) << last_text();
    EXPECT_OK(untax_operator_destroy(op));
  });
  std::int64_t events = -1;
  std::int64_t lost = -1;
  EXPECT_OK(untax_trace_stop(&events, &lost));
  EXPECT_EQ(events, 0) << "nothing ran";
  EXPECT_EQ(lost, 0);
  std::ifstream written(file.path());
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  EXPECT_EQ(untax::trace_from_json(text).operators.size(), 2U);
}

}  // namespace
