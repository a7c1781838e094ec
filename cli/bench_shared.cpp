#include "bench_reports.hpp"

#include <fmt/format.h>

#include "bench_options.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "names.hpp"
#include "ops/common/registry.hpp"
#include "output.hpp"
#include "trace.hpp"

namespace untax::cli {
namespace {

std::string problem_text(const bench::shared_row& row) {
  const gemm_problem& p = row.problem;
  return fmt::format("{} x {} x {}, {}{}", p.m, p.n, p.k, name_of(p.type),
                     p.gather == gather_axis::k ? ", k" : "");
}

/// The time relative to the first pattern; with one rank, to the GEMM alone.
std::string of_the_first(const bench::shared_row& row, const pattern_figure& f) {
  const auto& first = row.figures.front().time;
  return first ? fmt::format("{:.3f}", f.time->median / first->median) : "";
}

/// The end of the rows from `from` on that have the same operator and number of ranks.
std::size_t end_of_group(const bench::shared_report& report, std::size_t from) {
  std::size_t end = from;
  while (end < report.rows.size() &&
         report.rows[end].operator_name == report.rows[from].operator_name &&
         report.rows[end].ranks == report.rows[from].ranks)
    ++end;
  return end;
}

bench::shared_options options_of(const bench_options& asked) {
  bench::shared_options options;
  if (!asked.rank_counts.empty()) options.rank_counts = asked.rank_counts;
  if (!asked.operator_name.empty()) {
    std::vector<std::string> known;
    for (const operator_entry& entry : operators()) known.push_back(entry.name);
    options.operators = {known[place_in("--operator", asked.operator_name, known)]};
  }
  options.sizes = asked.sizes;
  if (asked.problems > 0) options.problems = asked.problems;
  options.seed = asked.seed;
  options.repeats = asked.repeats;
  options.partials = partials_of(asked.overlap);
  options.traced = !asked.trace.empty();
  return options;
}

}  // namespace

std::string text_of(const bench::shared_report& report, int columns, text_style how) {
  using side = table::align;
  std::string text = fmt::format(
      "Ranks that share one {}: for comparing builds of untax, since their times say nothing of "
      "links. us of a run, by the clock of the GPU; seed {}\n",
      report.device, report.seed);
  const auto us = [](double seconds) { return fmt::format("{:.1f}", 1e6 * seconds); };
  int refused = 0;
  for (std::size_t at = 0; at < report.rows.size();) {
    text += fmt::format("\n{}, {} {}\n", report.rows[at].operator_name, report.rows[at].ranks,
                        report.rows[at].ranks == 1 ? "rank" : "ranks");
    table rows({{"m x n x k"},
                {"pattern"},
                {"us", side::right},
                {"p10", side::right},
                {"p90", side::right},
                {"ratio", side::right}},
               2);
    for (const std::size_t end = end_of_group(report, at); at < end; ++at) {
      const bench::shared_row& row = report.rows[at];
      for (const pattern_figure& f : row.figures) {
        if (!f.time) {
          ++refused;
          continue;
        }
        rows.add({problem_text(row), f.by,
                  us(f.time->median) + (f.error <= row.tolerance ? "" : " WRONG"), us(f.time->p10),
                  us(f.time->p90), of_the_first(row, f)});
      }
    }
    text += rows.render(columns, how.utf8);
  }
  if (report.traced) text += text_of(report.cost_of_trace());
  if (refused > 0)
    text += fmt::format("left out, since the operator does not have it here: {}\n", refused);
  return text;
}

int run_shared(const bench_options& asked) {
  bench::shared_options options = options_of(asked);
  bench::shared_report report;
  {
    progress_bar bar("bench shared", bench::steps_of(options));
    options.progress = [&bar] { bar.advance(); };
    report = run_shared_suite(options);
  }
  if (asked.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!asked.json.empty()) write_json(asked.json, to_json(report, options.repeats));
  return report.right() ? 0 : 1;
}

}  // namespace untax::cli
