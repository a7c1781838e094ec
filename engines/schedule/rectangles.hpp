#pragma once

#include <span>

#include "engines/schedule/plan.hpp"
#include "engines/schedule/problems.hpp"

namespace untax::schedule {

/// Checks that every rectangle of every step lies inside the matrix it names, that private tiles
/// are not outgrown, that a and b are this rank's own, and that nobody writes them.
void check_rectangles(std::span<const rank_plan> plans, problem_list& problems);

}  // namespace untax::schedule
