#include "ops/common/protocol_test.hpp"
#include "ops/merge_partial_attention/workload.hpp"

namespace untax::testing {
namespace {

TEST(merge_partial_attention_model, every_schedule_ends_and_is_complete) {
  check_schedules(merge_entry());
}

TEST(merge_partial_attention_model, no_execution_goes_wrong) { check_executions(merge_entry()); }

TEST(merge_partial_attention_model, every_mutant_is_killed) { check_mutants(merge_entry()); }

}  // namespace
}  // namespace untax::testing
