#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engines/model/explore.hpp"
#include "ops/common/protocol_variant.hpp"

namespace untax {

/// Executions are explored for 1 to so many ranks.
inline constexpr int most_ranks_of_scenarios = 3;

/// How hard to look.
struct check_effort {
  std::uint64_t executions = 500;   ///< at random, of each scenario and of each mutant
  std::vector<int> ranks = {2, 3};  ///< in the scenarios that are explored
  /// Proves few schedules, and leaves out the search that is complete up to a bound.
  bool quick = false;
};

/// What is known about one variant of an operator.
struct variant_findings {
  protocol_variant what;
  std::uint64_t schedules = 0;   ///< proved to end, to be complete and to be free of races
  std::uint64_t executions = 0;  ///< explored; those of mutants not counted
  std::vector<model::mutant_fate> mutants;
  std::vector<std::string> failures;  ///< schedules that are wrong, executions that failed

  [[nodiscard]] std::uint64_t killed() const;
  /// The mutants that can be told from the original.
  [[nodiscard]] std::size_t hunted() const { return mutants.size() - equivalents().size(); }
  /// The mutants that are proved to be as right as the original with the numbers of ranks that were
  /// looked at, while another number needs the verb.
  [[nodiscard]] std::vector<std::string> equivalents() const;
  /// The failures, and the mutants that lived.
  [[nodiscard]] std::vector<std::string> troubles() const;
  /// Nothing failed, and no mutant lived that can be told from the original. One that lives because
  /// no number of ranks needs the verb counts too: such a verb does not belong into a protocol.
  [[nodiscard]] bool right() const { return failures.empty() && killed() == hunted(); }
};

/// Schedules are proved for 1 to so many ranks.
inline constexpr int most_ranks_of_schedules = 8;

/// Proves the schedules of the grid for `ranks` ranks.
void prove_schedules(variant_findings& found, int ranks, const check_effort& effort);

/// Explores the scenarios of `ranks` ranks: at random, and where two threads are all there is, also
/// every execution with at most two unforced switches between them.
void explore_executions(variant_findings& found, int ranks, const check_effort& effort);

/// Hunts every mutant through the scenarios of all numbers of ranks in `effort`. For those that are
/// harmless there it looks whether other numbers need the verb.
void hunt_mutants(variant_findings& found, const check_effort& effort);

}  // namespace untax
