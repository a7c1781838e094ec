#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/model/mutation.hpp"
#include "engines/model/scenario.hpp"
#include "engines/model/search.hpp"

namespace untax::model {

/// Carries the protocol of a scenario out on model memory, again and again, with other
/// interleavings and other stale reads, and compares c with what it should be after every epoch.
/// One model thread stands for each worker that runs beside others at a rank.
[[nodiscard]] exploration explore(const scenario& s, const budget& limits);

/// The same with a mutation; a budget that ends without a failure means that the mutant survived.
[[nodiscard]] exploration explore(const scenario& s, const mutation& m, const budget& limits);

/// What became of one mutant over several scenarios of the same protocol.
struct mutant_fate {
  mutation what;
  std::string name;
  bool killed = false;
  /// Not killed, and the schedule checker proves that no scenario needs the verb.
  bool harmless = false;
  /// Of a harmless one: the scenario of another number of ranks that needs the verb, if one does.
  std::string needed_in;
  std::uint64_t executions = 0;
  std::string scenario;  ///< where it was killed
  std::string failure;   ///< how
};

/// Tries every mutant of every scenario. The scenarios have the same kernels; a mutant is killed
/// when one of them catches it. Scenarios in which a mutant is provably harmless are passed over.
[[nodiscard]] std::vector<mutant_fate> hunt_mutants(std::span<const scenario> scenarios,
                                                    const budget& limits);

/// Looks for a scenario of `others`, which have the same kernels, that needs the verb of a harmless
/// mutant, and names it in `fate.needed_in`.
void find_need(mutant_fate& fate, std::span<const scenario> others);

}  // namespace untax::model
