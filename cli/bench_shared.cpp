#include "bench_shared.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "files.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "terminal.hpp"

namespace untax::cli {
namespace {

std::string problem_text(const bench::shared_row& row) {
  const gemm_problem& p = row.problem;
  return fmt::format("{} x {} x {}, {}{}", p.m, p.n, p.k, name_of(p.type),
                     p.gather == gather_axis::k ? ", k" : "");
}

void print_report(const bench::shared_report& report) {
  show(
      "Ranks that share one {}: for comparing builds of untax, since their times say nothing of "
      "links. us of a run, by "
      "the clock of the GPU; seed {}\n\n",
      report.device, report.seed);
  using side = table::align;
  table rows({{"operator"},
              {"ranks", side::right},
              {"m x n x k"},
              {"pattern"},
              {"us", side::right},
              {"p10 to p90", side::right}});
  int refused = 0;
  for (const bench::shared_row& row : report.rows) {
    for (const pattern_figure& f : row.figures) {
      if (!f.time) {
        ++refused;
        continue;
      }
      rows.add(
          {row.operator_name, fmt::format("{}", row.ranks), problem_text(row), f.by,
           fmt::format("{:.1f}{}", 1e6 * f.time->median, f.error <= row.tolerance ? "" : " WRONG"),
           fmt::format("{:.1f} to {:.1f}", 1e6 * f.time->p10, 1e6 * f.time->p90)});
    }
  }
  show(rows.render(width(stream::out), style(stream::out).utf8));
  if (refused > 0) show("left out, since the operator does not have it here: {}\n", refused);
}

}  // namespace

int run_shared(bench::shared_options options, const std::string& json) {
  bench::shared_report report;
  {
    progress_bar bar("bench shared", bench::steps_of(options));
    options.progress = [&bar] { bar.advance(); };
    report = run_shared_suite(options);
  }
  if (json != "-") print_report(report);
  if (!json.empty()) write_json(json, to_json(report, options.repeats));
  return report.right() ? 0 : 1;
}

}  // namespace untax::cli
