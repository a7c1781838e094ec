#include "ops/checks.hpp"
#include "ops/common/protocol_test.hpp"
#include "ops/operators.hpp"

namespace untax::testing {
namespace {

TEST(flash_decode_model, every_schedule_ends_and_is_complete) {
  check_schedules(spec<flash_decode>);
}

TEST(flash_decode_model, no_execution_goes_wrong) { check_executions(spec<flash_decode>); }

TEST(flash_decode_model, every_mutant_is_killed) { check_mutants(spec<flash_decode>); }

}  // namespace
}  // namespace untax::testing
