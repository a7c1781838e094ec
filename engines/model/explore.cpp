#include "engines/model/explore.hpp"

#include <algorithm>

#include "engines/model/execution.hpp"

namespace untax::model {
namespace {

exploration explore_with(const scenario& s, const std::optional<mutation>& m, budget limits) {
  execution subject(s, m);
  limits.depth = std::max(limits.depth, subject.depth());
  return search(subject, limits);
}

bool has(const scenario& s, const mutation& m) {
  const auto known = mutants_of(s);
  return std::find(known.begin(), known.end(), m) != known.end();
}

/// Explores one mutant in the scenarios until one kills it.
mutant_fate fate_of(const mutation& m, std::span<const scenario> scenarios, const budget& limits) {
  mutant_fate fate;
  fate.what = m;
  fate.harmless = true;
  for (const scenario& s : scenarios) {
    if (!has(s, m)) continue;
    fate.name = describe(m, s);
    if (provably_harmless(s, m)) continue;
    fate.harmless = false;
    const exploration result = explore(s, m, limits);
    fate.executions += result.executions;
    if (result.ok) continue;
    fate.killed = true;
    fate.scenario = s.name;
    fate.failure = result.failure;
    break;
  }
  return fate;
}

}  // namespace

exploration explore(const scenario& s, const budget& limits) {
  return explore_with(s, std::nullopt, limits);
}

exploration explore(const scenario& s, const mutation& m, const budget& limits) {
  return explore_with(s, m, limits);
}

std::vector<mutant_fate> hunt_mutants(std::span<const scenario> scenarios, const budget& limits) {
  std::vector<mutation> mutations;
  for (const scenario& s : scenarios) {
    for (const mutation& m : mutants_of(s)) {
      if (std::find(mutations.begin(), mutations.end(), m) == mutations.end())
        mutations.push_back(m);
    }
  }
  std::vector<mutant_fate> fates;
  for (const mutation& m : mutations) fates.push_back(fate_of(m, scenarios, limits));
  return fates;
}

void find_need(mutant_fate& fate, std::span<const scenario> others) {
  const auto needs = [&](const scenario& s) {
    return has(s, fate.what) && !provably_harmless(s, fate.what);
  };
  const auto match = std::find_if(others.begin(), others.end(), needs);
  if (match != others.end()) fate.needed_in = match->name;
}

}  // namespace untax::model
