#include "ops/common/model_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engines/schedule/check.hpp"

namespace untax {
namespace {

/// Far more than any scenario of two threads has with two switches.
constexpr std::uint64_t most_bounded_executions = 200'000;
constexpr unsigned switches = 2;

int threads_of(const model::scenario& s) {
  int threads = 0;
  for (const schedule::rank_plan& plan : s.plans) threads += plan.lanes();
  return threads;
}

void explore(variant_findings& findings, const model::scenario& s, const model::budget& limits) {
  const model::exploration result = model::explore(s, limits);
  findings.executions += result.executions;
  if (!result.ok) findings.failures.push_back(fmt::format("{}: {}", s.name, result.failure));
}

}  // namespace

std::uint64_t variant_findings::killed() const {
  return static_cast<std::uint64_t>(
      std::count_if(mutants.begin(), mutants.end(), [](const auto& fate) { return fate.killed; }));
}

std::vector<std::string> variant_findings::equivalents() const {
  std::vector<std::string> texts;
  for (const model::mutant_fate& fate : mutants) {
    if (fate.needed_in.empty()) continue;
    texts.push_back(
        fmt::format("equivalent: {}: {}; the schedule checker proves that nothing needs "
                    "that verb with so many ranks, and that others do: {}",
                    what.name, fate.name, fate.needed_in));
  }
  return texts;
}

std::vector<std::string> variant_findings::troubles() const {
  std::vector<std::string> names;
  for (const std::string& failure : failures) names.push_back("failed: " + failure);
  for (const model::mutant_fate& fate : mutants) {
    if (fate.killed || !fate.needed_in.empty()) continue;
    names.push_back(
        fmt::format("survived: {}: {}{}", what.name, fate.name,
                    fate.harmless ? ", and the schedule checker proves that nothing needs that verb"
                                  : fmt::format(", in {} executions", fate.executions)));
  }
  return names;
}

void prove_schedules(variant_findings& findings, int ranks, const check_effort& effort) {
  for (const schedule_case& c : findings.what.schedule_cases(ranks, effort.quick)) {
    const auto proof = schedule::check_schedule(c.plans());
    if (proof.ok()) {
      ++findings.schedules;
    } else {
      findings.failures.push_back(
          fmt::format("the schedule of {}: {}", c.name, proof.problems.front()));
    }
  }
}

void explore_executions(variant_findings& findings, int ranks, const check_effort& effort) {
  for (const model::scenario& s : findings.what.scenarios(ranks)) {
    explore(findings, s, {.how = model::strategy::random, .executions = effort.executions});
    if (effort.quick || threads_of(s) > 2) continue;
    explore(findings, s,
            {.how = model::strategy::bounded,
             .executions = most_bounded_executions,
             .switches = switches});
  }
}

void hunt_mutants(variant_findings& findings, const check_effort& effort) {
  std::vector<model::scenario> scenarios;
  for (const int ranks : effort.ranks) {
    for (model::scenario& s : findings.what.scenarios(ranks)) scenarios.push_back(std::move(s));
  }
  findings.mutants = model::hunt_mutants(scenarios, {.executions = effort.executions});

  const auto asked_for = [&](int ranks) {
    return std::find(effort.ranks.begin(), effort.ranks.end(), ranks) != effort.ranks.end();
  };
  for (model::mutant_fate& fate : findings.mutants) {
    for (int ranks = 2; fate.harmless && ranks <= most_ranks_of_scenarios; ++ranks) {
      if (fate.needed_in.empty() && !asked_for(ranks))
        model::find_need(fate, findings.what.scenarios(ranks));
    }
  }
}

}  // namespace untax
