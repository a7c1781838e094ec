#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/model/mutation.hpp"
#include "engines/model/scenario.hpp"
#include "engines/model/search.hpp"

namespace untax::model {

/// Executes the protocol of a scenario on model memory many times, with different interleavings and
/// different stale reads, and compares c with the expected result after every epoch. There is one
/// model thread for each worker slot of a rank.
[[nodiscard]] exploration explore(const scenario& s, const budget& limits);

/// As above, with a mutation. If the budget ends without a failure, the mutant has survived.
[[nodiscard]] exploration explore(const scenario& s, const mutation& m, const budget& limits);

/// The fate of one mutant over several scenarios of the same protocol.
struct mutant_fate {
  mutation what;
  std::string name;
  bool killed = false;
  /// Not killed, and the schedule checker proves that no scenario needs the verb.
  bool harmless = false;
  /// If harmless: a scenario with another number of ranks that needs the verb, if there is one.
  std::string needed_in;
  std::uint64_t executions = 0;
  std::string scenario;  ///< where it was killed
  std::string failure;   ///< how
};

/// Tries every mutant of every scenario. The scenarios have the same kernels; a mutant is killed
/// when one of them catches it. Scenarios in which a mutant is provably harmless are passed over.
[[nodiscard]] std::vector<mutant_fate> hunt_mutants(std::span<const scenario> scenarios,
                                                    const budget& limits);

/// Searches the scenarios `others`, which have the same kernels, for one that needs the verb of a
/// harmless mutant, and names it in `fate.needed_in`.
void find_need(mutant_fate& fate, std::span<const scenario> others);

}  // namespace untax::model
