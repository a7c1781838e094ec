#include "bench_reports.hpp"

#include <fmt/format.h>

#include "bench/suites/operators.hpp"
#include "bench_options.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "pattern_table.hpp"
#include "src/taxes/time_text.hpp"

namespace untax::cli {
namespace {

void print_operators(const std::vector<bench::operator_figures>& suites, int ranks) {
  for (const bench::operator_figures& figures : suites) {
    show("{}; {} ranks\n{}\n", figures.what.description, ranks,
         pattern_table(figures.what, ranks, figures.results, 0, width(stream::out),
                       style(stream::out)));
  }
}

}  // namespace

std::string text_of(const std::vector<bench::comparison>& comparisons, int columns,
                    text_style how) {
  using side = table::align;
  table rows({{"what"},
              {"median", side::right},
              {"p10", side::right},
              {"p90", side::right},
              {"ratio", side::right},
              {"bar"}});
  for (const bench::comparison& c : comparisons) {
    const time_unit unit = unit_for(c.time.median);
    const auto times = [&](const std::string& what,
                           const spread& time) -> std::vector<std::string> {
      return {what, fmt::format("{} {}", in_unit(time.median, unit), unit.name),
              in_unit(time.p10, unit), in_unit(time.p90, unit)};
    };
    std::vector<std::string> ours = times(c.name, c.time);
    ours.push_back(fmt::format("{:.{}f}", c.ratio(), c.ratio() < 100 ? 2 : 0));
    ours.push_back(fmt::format("{} {}", c.bar_text(), c.met() ? "met" : "MISSED"));
    rows.add(std::move(ours));
    rows.add(times(c.reference, c.reference_time));
  }
  return rows.render(columns, how.utf8);
}

int run_host(const bench_options& options) {
  std::vector<bench::comparison> comparisons;
  {
    bench::host_suite_options suite{options.repeats, {}};
    progress_bar bar("bench host", bench::steps_of(suite));
    suite.progress = [&bar] { bar.advance(); };
    comparisons = bench::run_host_suite(suite);
  }
  if (options.json != "-") show(text_of(comparisons, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(comparisons, options.repeats));
  bool met = true;
  for (const bench::comparison& c : comparisons) met = met && c.met();
  return met ? 0 : 1;
}

int run_operators(const bench_options& options) {
  bench::operator_suite_options suite;
  suite.repeats = options.repeats;
  std::vector<bench::operator_figures> suites;
  {
    progress_bar bar("bench operators", bench::steps_of(suite));
    suite.progress = [&bar] { bar.advance(); };
    suites = bench::run_operator_suite(suite);
  }
  if (options.json != "-") print_operators(suites, suite.ranks);
  if (!options.json.empty()) write_json(options.json, to_json(suites, suite.ranks, suite.repeats));
  return 0;
}

}  // namespace untax::cli
