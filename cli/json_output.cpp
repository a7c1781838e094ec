#include "json_output.hpp"

#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <untax/core/build_info.hpp>
#include <untax/core/version.hpp>
#include <untax/taxes/machine.hpp>

#include "json_parts.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/trial.hpp"

namespace untax::cli {

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

/// The text of a document, indented and with an end of line.
std::string text_of(const json& document) { return document.dump(2) + "\n"; }

namespace {

json from(const trial_subject& what) {
  json out = {{"operator", what.name}};
  for (const auto& [name, value] : what.facts) {
    std::visit([&, key = name](const auto& v) { out[key] = v; }, value);
  }
  return out;
}

json from(const bench::pattern_result& result, const trial_subject& what, int ranks) {
  json out = {{"pattern", name_of(result.asked)},
              {"chosen", name_of(result.chosen)},
              {"explanation", result.explanation}};
  if (!result.refusal.empty()) {
    out["refusal"] = result.refusal;
    return out;
  }
  out.update({{"seconds", cli::from(result.time)},
              {what.rate_name, what.work(ranks) / result.time.median}});
  if (result.error) out["relative_error"] = *result.error;
  return out;
}

}  // namespace

std::string to_json(const run_report& report) {
  const bench::pattern_request& work = report.request->work;
  json out = head("untax-run");
  out.update(from(work.what));
  out["ranks"] = report.ranks;
  out["kind"] = report.kind;
  out["backend"] = work.what.memory == memory_kind::cuda ? "cuda" : "host";
  out["repeats"] = work.repeats;
  out["seed"] = work.seed;
  if (work.verify) {
    out["tolerance"] = report.tolerance;
    out["right"] = report.right();
  }
  for (const auto& result : report.results) {
    json object = from(result, work.what, report.ranks);
    if (work.verify && result.error) object["right"] = report.right(result);
    out["patterns"].push_back(std::move(object));
  }
  return text_of(out);
}

std::string to_json(const gpu_check_report& report) {
  json out = head("untax-check-gpu");
  const gpu_check_request& asked = report.request;
  out["operator"] = asked.entry.name;
  out["m"] = asked.problem.m;
  out["n"] = asked.problem.n;
  out["k"] = asked.problem.k;
  out["ranks"] = asked.ranks;
  out["gpu"] = asked.gpu;
  out["multiprocessors"] = report.multiprocessors;
  out["right"] = report.right();
  for (const gpu_check_row& row : report.rows) {
    out["plans"].push_back({{"way", row.way},
                            {"plan", row.found.plan},
                            {"planned", row.found.refusal.empty()},
                            {"lanes", row.found.lanes},
                            {"transfers", row.found.transfers},
                            {"steps", row.found.steps},
                            {"waits", row.found.waits},
                            {"faults", row.found.faults},
                            {"refusal", row.found.refusal}});
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
                         {"needed_in", fate.needed_in},
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

std::string to_json(const std::vector<bench::comparison>& comparisons, int repeats) {
  json out = head("untax-bench-host");
  out["repeats"] = repeats;
  for (const bench::comparison& c : comparisons) {
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

std::string to_json(const std::vector<bench::operator_figures>& suites, int ranks, int repeats) {
  json out = head("untax-bench-operators");
  out["ranks"] = ranks;
  out["repeats"] = repeats;
  for (const bench::operator_figures& figures : suites) {
    json object = from(figures.what);
    for (const auto& result : figures.results)
      object["patterns"].push_back(from(result, figures.what, ranks));
    out["problems"].push_back(std::move(object));
  }
  return text_of(out);
}

}  // namespace untax::cli
