#include "ops/common/protocol_test.hpp"
#include "ops/common/registry.hpp"

namespace untax::testing {
namespace {

TEST(all_gather_gemm_model, every_schedule_ends_and_is_complete) {
  check_schedules(all_gather_gemm_entry());
}

TEST(all_gather_gemm_model, no_execution_goes_wrong) { check_executions(all_gather_gemm_entry()); }

TEST(all_gather_gemm_model, every_mutant_is_killed) { check_mutants(all_gather_gemm_entry()); }

}  // namespace
}  // namespace untax::testing
