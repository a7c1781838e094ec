#include "ops/broadcast/spec.hpp"
#include "ops/collectives_common/direct_test.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/protocol_test.hpp"

namespace untax::testing {
namespace {

TEST(broadcast_model, every_schedule_ends_and_is_complete) { check_schedules(broadcast_entry()); }

TEST(broadcast_model, no_execution_goes_wrong) { check_executions(broadcast_entry()); }

TEST(broadcast_model, every_mutant_is_killed) { check_mutants(broadcast_entry()); }

TEST(broadcast_model, every_flag_between_buffers_is_needed) { check_every_flag(broadcast_entry()); }

}  // namespace
}  // namespace untax::testing
