#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engines/model/explore.hpp"
#include "ops/common/protocol_variant.hpp"

namespace untax {

/// The most ranks of scenarios whose executions are explored.
inline constexpr int most_ranks_of_scenarios = 3;

/// The effort of a check.
struct check_effort {
  std::uint64_t executions = 500;   ///< at random, of each scenario and of each mutant
  std::vector<int> ranks = {2, 3};  ///< in the scenarios that are explored
  /// Proves few schedules, and leaves out the search that is complete up to a bound.
  bool quick = false;
};

/// The findings about one variant of an operator.
struct variant_findings {
  protocol_variant what;
  std::uint64_t schedules = 0;   ///< proved to end, to be complete and to be free of races
  std::uint64_t executions = 0;  ///< explored, without the executions of mutants
  std::vector<model::mutant_fate> mutants;
  std::vector<std::string> failures;  ///< schedules that are wrong, executions that failed

  [[nodiscard]] std::uint64_t killed() const;
  /// The number of mutants that are not equivalent to the original.
  [[nodiscard]] std::size_t hunted() const { return mutants.size() - equivalents().size(); }
  /// The mutants that are proved to be as correct as the original with all numbers of ranks that
  /// were checked, while another number needs the verb.
  [[nodiscard]] std::vector<std::string> equivalents() const;
  /// The failures, and the mutants that survived.
  [[nodiscard]] std::vector<std::string> troubles() const;
  /// Whether nothing failed, and all mutants but `equivalents()` were killed. If no number of ranks
  /// needs the verb of a survivor, that is a failure, too: such a verb does not belong in a
  /// protocol.
  [[nodiscard]] bool right() const { return failures.empty() && killed() == hunted(); }
};

/// The most ranks of problems whose schedules are proved.
inline constexpr int most_ranks_of_schedules = 8;

/// Proves the schedules of the grid for `ranks` ranks.
void prove_schedules(variant_findings& findings, int ranks, const check_effort& effort);

/// Explores the scenarios of `ranks` ranks: at random, and if there are only two threads also every
/// execution with at most two unforced switches between them.
void explore_executions(variant_findings& findings, int ranks, const check_effort& effort);

/// Explores every mutant in the scenarios of all numbers of ranks in `effort`. For mutants that are
/// harmless there it searches for another number of ranks that needs the verb.
void hunt_mutants(variant_findings& findings, const check_effort& effort);

}  // namespace untax
