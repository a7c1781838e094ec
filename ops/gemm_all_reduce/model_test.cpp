#include "ops/common/protocol_test.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/gemm_all_reduce/spec.hpp"

namespace untax::testing {
namespace {

TEST(gemm_all_reduce_model, every_schedule_ends_and_is_complete) {
  check_schedules(gemm_all_reduce_entry());
}

TEST(gemm_all_reduce_model, no_execution_goes_wrong) {
  check_executions(gemm_all_reduce_entry(), {.executions = 200});
}

TEST(gemm_all_reduce_model, every_mutant_is_killed) { check_mutants(gemm_all_reduce_entry()); }

}  // namespace
}  // namespace untax::testing
