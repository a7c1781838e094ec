#include "ops/collectives_common/direct_test.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/protocol_test.hpp"
#include "ops/reduce_scatter/spec.hpp"

namespace untax::testing {
namespace {

TEST(reduce_scatter_model, every_schedule_ends_and_is_complete) {
  check_schedules(reduce_scatter_entry());
}

TEST(reduce_scatter_model, no_execution_goes_wrong) { check_executions(reduce_scatter_entry()); }

TEST(reduce_scatter_model, every_mutant_is_killed) { check_mutants(reduce_scatter_entry()); }

TEST(reduce_scatter_model, every_flag_between_buffers_is_needed) {
  check_every_flag(reduce_scatter_entry());
}

}  // namespace
}  // namespace untax::testing
