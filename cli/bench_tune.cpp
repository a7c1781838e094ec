#include "bench_reports.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/world/devices.hpp>

#include "bench_options.hpp"
#include "cell_text.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "names.hpp"
#include "ops/common/registry.hpp"
#include "output.hpp"

namespace untax::cli {
namespace {

std::vector<tuned_problem> problems_of(const bench_options& asked, const std::vector<int>& ranks) {
  const tune_request& request = asked.tune;
  const auto families = bench::tuned_families(asked.operator_name);
  if (!request.check) return bench::tuning_order(families, ranks, request.quick);
  std::vector<tuned_problem> problems;
  for (const int count : ranks) {
    for (const auto& family : families) {
      const auto some = bench::held_out_problems(family, count, request.held_out);
      problems.insert(problems.end(), some.begin(), some.end());
    }
  }
  return problems;
}

using side = table::align;

/// One table for each operator and axis that it gathers, under its name; `add` adds the row of an
/// entry.
template <class Entries, class Add>
std::string tables_of(const Entries& entries, const std::vector<table::column>& titles, int columns,
                      text_style how, const Add& add) {
  std::string text;
  for (auto at = entries.begin(); at != entries.end();) {
    const std::string family = family_text(at->problem);
    table rows(titles);
    for (; at != entries.end() && family_text(at->problem) == family; ++at) add(rows, *at);
    text += fmt::format("{}\n{}\n", family, rows.render(columns, how.utf8));
  }
  return text;
}

}  // namespace

std::string text_of(const tuning_table& measured, int columns, text_style how) {
  const auto add = [](table& rows, const tuning_entry& entry) {
    const auto best = std::ranges::min_element(entry.seconds, {},
                                               [](const auto& element) { return element.second; });
    const auto library = entry.seconds.find(pattern::bulk_library);
    const bool compared = library != entry.seconds.end();
    rows.add({shape_text(entry.problem), std::string(name_of(best->first)),
              microseconds(best->second), compared ? microseconds(library->second) : "",
              compared ? fmt::format("{:.2f}", library->second / best->second) : ""});
  };
  return tables_of(measured.entries,
                   {{"m x n x k"},
                    {"best"},
                    {"us", side::right},
                    {"bulk_library", side::right},
                    {"ratio", side::right}},
                   columns, how, add);
}

std::string text_of(const bench::tune_check& check, int columns, text_style how) {
  const auto add = [](table& rows, const bench::tune_verdict& row) {
    const bool is_best = row.best == row.chosen;
    rows.add({shape_text(row.problem), std::string(name_of(row.chosen)),
              microseconds(row.chosen_seconds), fmt::format("{:.1f} %", 100 * row.loss()),
              is_best ? "" : std::string(name_of(row.best)),
              is_best ? "" : microseconds(row.best_seconds)});
  };
  return tables_of(check.rows,
                   {{"m x n x k"},
                    {"automatic"},
                    {"us", side::right},
                    {"lost", side::right},
                    {"quicker"},
                    {"us", side::right}},
                   columns, how, add) +
         fmt::format(
             "within {:.0f} % of the best: {:.1f} % of {} problems (at least {:.0f} %, {})\n",
             100 * bench::tune_check::most_loss, 100 * check.share(), check.rows.size(),
             100 * bench::tune_check::least_share, check.met() ? "met" : "MISSED");
}

int run_tune(const bench_options& asked) {
  std::vector<int> ranks = asked.rank_counts;
  const int repeats = asked.repeats;
  const std::string& json = asked.json;
  if (!asked.operator_name.empty()) {
    std::vector<std::string> known;
    for (const operator_entry& entry : operators()) {
      if (entry.on_gpus) known.push_back(entry.name);
    }
    (void)place_in("--operator", asked.operator_name, known);
  }
  if (ranks.empty()) {
    const device_survey survey = survey_devices(false);
    if (survey.devices.size() < 2) {
      throw error(errc::unsupported,
                  fmt::format("bench tune needs two GPUs or more; {}",
                              survey.problem.empty() ? "there is one" : survey.problem));
    }
    ranks.push_back(static_cast<int>(survey.devices.size()));
  }
  for (const int count : ranks) {
    if (count < 2)
      throw error(errc::unsupported,
                  fmt::format("--ranks is {}; bench tune needs two GPUs or more", count));
  }
  bench::tune_options options;
  options.problems = problems_of(asked, ranks);
  options.repeats = repeats;
  options.seconds = asked.seconds;
  options.automatic = asked.tune.check;
  bench::tune_result result;
  {
    progress_bar bar("bench tune", static_cast<std::int64_t>(options.problems.size()));
    options.progress = [&bar] { bar.advance(); };
    result = bench::run_tuning(options);
  }
  for (const std::string& wrong : result.wrong) complain("WRONG: " + wrong);
  if (result.left_out > 0) {
    complain(fmt::format("{} of {} problems were left out: {} seconds were over", result.left_out,
                         options.problems.size(), asked.seconds));
  }
  bool good = result.wrong.empty();
  if (asked.tune.check) {
    const bench::tune_check check = bench::check_choices(result);
    good = good && check.met();
    if (json != "-") show(text_of(check, width(stream::out), style(stream::out)));
    if (!json.empty()) write_json(json, to_json(check, repeats));
  } else {
    if (json != "-") show(text_of(result.table, width(stream::out), style(stream::out)));
    if (!json.empty()) write_json(json, untax::to_json(result.table));
  }
  return good ? 0 : 1;
}

}  // namespace untax::cli
