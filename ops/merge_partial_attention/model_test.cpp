#include "ops/checks.hpp"
#include "ops/common/protocol_test.hpp"
#include "ops/operators.hpp"

namespace untax::testing {
namespace {

TEST(merge_partial_attention_model, every_schedule_ends_and_is_complete) {
  check_schedules(spec<merge_partial_attention>);
}

TEST(merge_partial_attention_model, no_execution_goes_wrong) {
  check_executions(spec<merge_partial_attention>);
}

TEST(merge_partial_attention_model, every_mutant_is_killed) {
  check_mutants(spec<merge_partial_attention>);
}

}  // namespace
}  // namespace untax::testing
