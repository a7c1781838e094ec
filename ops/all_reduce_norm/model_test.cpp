#include "ops/checks.hpp"
#include "ops/common/protocol_test.hpp"
#include "ops/operators.hpp"

namespace untax::testing {
namespace {

TEST(all_reduce_norm_model, every_schedule_ends_and_is_complete) {
  check_schedules(spec<all_reduce_norm>);
}

TEST(all_reduce_norm_model, no_execution_goes_wrong) { check_executions(spec<all_reduce_norm>); }

TEST(all_reduce_norm_model, every_mutant_is_killed) { check_mutants(spec<all_reduce_norm>); }

}  // namespace
}  // namespace untax::testing
