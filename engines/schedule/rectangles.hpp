#pragma once

#include <span>

#include "engines/schedule/plan.hpp"
#include "engines/schedule/problems.hpp"

namespace untax::schedule {

/// Checks that every rectangle of every step lies inside its matrix or private tile, that a and b
/// are this rank's own (`reduce` may read a of others), and that no step writes them.
void check_rectangles(std::span<const rank_plan> plans, problem_list& problems);

}  // namespace untax::schedule
