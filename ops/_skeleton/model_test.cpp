#include "ops/_skeleton/spec.hpp"
#include "ops/common/protocol_test.hpp"
#include "ops/common/workload.hpp"

namespace untax::testing {
namespace {

/// Proved, without running anything: for 1 to 8 ranks and shapes that nothing divides.
TEST(skeleton_model, every_schedule_ends_and_is_complete) { check_schedules(skeleton_entry()); }

/// Explored on model memory: 2 and 3 ranks, enough epochs that every room is used again.
TEST(skeleton_model, no_execution_goes_wrong) { check_executions(skeleton_entry()); }

/// A protocol without one of its verbs, or with one that orders nothing, has to fail. A verb that
/// nothing needs counts as a failure, too: it does not belong into a protocol.
TEST(skeleton_model, every_mutant_is_killed) { check_mutants(skeleton_entry()); }

}  // namespace
}  // namespace untax::testing
