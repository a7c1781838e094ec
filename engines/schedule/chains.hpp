#pragma once

#include <span>

#include "engines/schedule/plan.hpp"
#include "engines/schedule/problems.hpp"

namespace untax::schedule {

/// Checks what a worker does in private, one epoch at a time: a chain of multiplications begins
/// with `first`, ends with `last`, stays with one tile and covers the columns of b exactly once;
/// products are used when they are finished, sums when they were begun, and of a panel only what
/// was put there.
void check_chains(std::span<const rank_plan> plans, problem_list& problems);

}  // namespace untax::schedule
