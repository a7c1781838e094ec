#include "ops/common/protocol_test.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace untax::testing {
namespace {

/// There is a program for each of those in ops/common/registry.hpp that have no model_test.cpp of
/// their own.
const operator_entry& entry() { return operator_named(UNTAX_OPERATOR); }

TEST(model, every_schedule_ends_and_is_complete) { check_schedules(entry()); }
TEST(model, no_execution_goes_wrong) { check_executions(entry()); }
TEST(model, every_mutant_is_killed) { check_mutants(entry()); }

}  // namespace
}  // namespace untax::testing
