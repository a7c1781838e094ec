#pragma once

#include <span>

#include "engines/schedule/plan.hpp"
#include "engines/schedule/problems.hpp"

namespace untax::schedule {

/// Checks the private tiles of workers, one epoch at a time. A chain of multiplications begins with
/// `first`, ends with `last`, stays with one tile and covers the columns of b exactly once.
/// Products are read only when they are finished, and sums only when they were begun. Of a panel,
/// only parts that were loaded are read.
void check_chains(std::span<const rank_plan> plans, problem_list& problems);

/// Checks that every rectangle of every step lies inside its matrix or private tile, that a and b
/// are this rank's own (`reduce` may read a of others), and that no step writes them.
void check_rectangles(std::span<const rank_plan> plans, problem_list& problems);

}  // namespace untax::schedule
