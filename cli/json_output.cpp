#include "json_output.hpp"

#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/build_info.hpp>
#include <untax/core/version.hpp>
#include <untax/taxes/machine.hpp>

namespace untax::cli {
namespace {

using json = nlohmann::ordered_json;

json head(std::string_view format) {
  const machine_facts facts = read_machine();
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return {
      {"format", format},         {"untax", version},
      {"commit", build_commit()}, {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))},
      {"machine", facts.system},  {"cpu", facts.cpu},
      {"cores", facts.cores}};
}

json from(const spread& time) {
  return {{"median", time.median}, {"p10", time.p10}, {"p90", time.p90}};
}

json from(const operator_entry& entry, const gemm_problem& problem) {
  json out = {{"operator", entry.name},
              {"m", problem.m},
              {"n", problem.n},
              {"k", problem.k},
              {"dtype", name_of(problem.type)}};
  if (entry.gathers) out["gather"] = name_of(problem.gather);
  if (entry.has_partials) out["partials"] = name_of(problem.partials);
  return out;
}

json from(const bench::pattern_result& result, double operations) {
  json out = {{"pattern", name_of(result.asked)},
              {"chosen", name_of(result.chosen)},
              {"explanation", result.explanation},
              {"seconds", from(result.time)},
              {"flops_per_second", operations / result.time.median}};
  if (result.error) out["relative_error"] = *result.error;
  return out;
}

std::string text_of(const json& document) { return document.dump(2) + "\n"; }

}  // namespace

std::string to_json(const run_report& report) {
  const bench::pattern_request& work = report.request->work;
  json out = head("untax-run");
  out.update(from(*work.entry, work.problem));
  out["ranks"] = report.ranks;
  out["kind"] = report.kind;
  out["repeats"] = work.repeats;
  out["seed"] = work.seed;
  if (work.verify) {
    out["tolerance"] = report.tolerance;
    out["right"] = report.right();
  }
  const double operations = bench::operations_of(*work.entry, work.problem, report.ranks);
  for (const auto& result : report.results) {
    json one = from(result, operations);
    if (work.verify) one["right"] = report.right(result);
    out["patterns"].push_back(std::move(one));
  }
  return text_of(out);
}

std::string to_json(const check_report& report) {
  json out = head("untax-check");
  out["right"] = report.right();
  for (const variant_findings& v : report.variants) {
    json mutants = json::array();
    for (const model::mutant_fate& fate : v.mutants) {
      mutants.push_back({{"mutant", fate.name},
                         {"killed", fate.killed},
                         {"harmless", fate.harmless},
                         {"executions", fate.executions},
                         {"scenario", fate.scenario},
                         {"failure", fate.failure}});
    }
    out["protocols"].push_back({{"protocol", v.what.name},
                                {"schedules_proved", v.schedules},
                                {"executions_explored", v.executions},
                                {"failures", v.failures},
                                {"mutants", std::move(mutants)}});
  }
  return text_of(out);
}

std::string to_json(const std::vector<bench::comparison>& all, int repeats) {
  json out = head("untax-bench-host");
  out["repeats"] = repeats;
  for (const bench::comparison& c : all) {
    out["comparisons"].push_back({{"name", c.name},
                                  {"reference", c.reference},
                                  {"seconds", from(c.time)},
                                  {"reference_seconds", from(c.reference_time)},
                                  {"ratio", c.ratio()},
                                  {"bar", c.bar_text()},
                                  {"met", c.met()}});
  }
  return text_of(out);
}

std::string to_json(const std::vector<bench::operator_figures>& all, int ranks, int repeats) {
  json out = head("untax-bench-operators");
  out["ranks"] = ranks;
  out["repeats"] = repeats;
  for (const bench::operator_figures& figures : all) {
    json one = from(*figures.entry, figures.problem);
    const double operations = bench::operations_of(*figures.entry, figures.problem, ranks);
    for (const auto& result : figures.results) one["patterns"].push_back(from(result, operations));
    out["problems"].push_back(std::move(one));
  }
  return text_of(out);
}

}  // namespace untax::cli
