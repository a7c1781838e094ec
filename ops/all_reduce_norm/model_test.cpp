#include "ops/all_reduce_norm/workload.hpp"
#include "ops/common/protocol_test.hpp"

namespace untax::testing {
namespace {

TEST(all_reduce_norm_model, every_schedule_ends_and_is_complete) { check_schedules(norm_entry()); }

TEST(all_reduce_norm_model, no_execution_goes_wrong) { check_executions(norm_entry()); }

TEST(all_reduce_norm_model, every_mutant_is_killed) { check_mutants(norm_entry()); }

}  // namespace
}  // namespace untax::testing
