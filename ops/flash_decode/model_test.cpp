#include "ops/common/protocol_test.hpp"
#include "ops/flash_decode/workload.hpp"

namespace untax::testing {
namespace {

TEST(flash_decode_model, every_schedule_ends_and_is_complete) {
  check_schedules(attention_entry());
}

TEST(flash_decode_model, no_execution_goes_wrong) { check_executions(attention_entry()); }

TEST(flash_decode_model, every_mutant_is_killed) { check_mutants(attention_entry()); }

}  // namespace
}  // namespace untax::testing
