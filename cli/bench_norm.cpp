#include "bench_reports.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "bench/suites/gpu_need.hpp"
#include "bench_options.hpp"
#include "cell_text.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "run_request.hpp"

namespace untax::cli {
namespace {

using bench::norm_report;
using bench::norm_row;

/// The largest error of the row's results, marked if it is too large.
std::string error_text(const norm_row& row) {
  double most = 0;
  for (const pattern_figure& f : row.figures) most = f.error <= most ? most : f.error;
  return fmt::format("{:.1e}{}", most, most <= bench::norm_tolerance ? "" : " WRONG");
}

}  // namespace

std::string text_of(const norm_report& report, int columns, text_style how) {
  using side = table::align;
  table rows({{"hidden"},
              {"tokens", side::right},
              {"fused", side::right},
              {"1 phase", side::right},
              {"2", side::right},
              {"sum", side::right},
              {"fused - sum", side::right},
              {"library", side::right},
              {"eager", side::right},
              {"NCCL", side::right},
              {"gain", side::right},
              {"error", side::right}},
             2);
  for (const norm_row& row : report.rows) {
    const double fused = row.seconds_of(bench::norm_fused);
    const double sum = row.sum_seconds();
    const double library = row.seconds_of(library_graph);
    rows.add(
        {std::to_string(row.hidden), std::to_string(row.tokens), microseconds_or("-", fused),
         microseconds_or("-", row.seconds_of(bench::norm_one_phase)),
         microseconds_or("-", row.seconds_of(bench::norm_two_phases)), microseconds_or("-", sum),
         fused > 0 && sum > 0 ? fmt::format("{:.1f}", 1e6 * (fused - sum)) : "-",
         microseconds_or("-", library), microseconds_or("-", row.seconds_of(library_eager)),
         microseconds_or("-", row.seconds_of(bench::library_sum_alone)),
         fused > 0 && library > 0 ? fmt::format("{:.2f}", library / fused) : "-", error_text(row)});
  }
  std::string text = fmt::format(
      "{}, {} x {}, {}, us of one run in a graph, beside {}\n"
      "sum: untax's all_reduce alone, the quicker of through rooms and direct; library: NCCL's "
      "all-reduce, then a kernel that adds the residual and normalises; eager: the same without a "
      "graph; gain: library over fused\n{}\n",
      bench::norm_fused, report.ranks, report.device, name_of(report.type), report.library,
      rows.render(columns, how.utf8));
  for (const bench::overlap_bar& b : report.bars()) {
    text += fmt::format("{}: {:.2f} ({} {:.2f}, {})\n", b.what, b.value,
                        b.at_most ? "at most" : "at least", b.bar, b.met() ? "met" : "MISSED");
  }
  return text;
}

int run_norm(const bench_options& options) {
  const norm_bench_request& request = options.norm;
  bench::norm_suite_options suite;
  suite.ranks = options.ranks();
  suite.repeats = options.repeats;
  if (!request.tokens.empty()) suite.tokens = request.tokens;
  if (!request.hidden.empty()) suite.hidden = request.hidden;
  for (const std::int64_t hidden : suite.hidden) {
    if (hidden % 8 != 0)
      throw error(errc::invalid_argument,
                  fmt::format("--hidden is {}; GPUs take multiples of 8", hidden));
  }
  bench::require_memory(suite, ranks_on_gpus(suite.ranks));
  norm_report report;
  {
    progress_bar bar("bench all-reduce-norm",
                     static_cast<std::int64_t>(suite.tokens.size() * suite.hidden.size()));
    suite.progress = [&bar] { bar.advance(); };
    report = bench::run_norm_suite(suite);
  }
  if (options.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report, options.repeats));
  return report.met() ? 0 : 1;
}

}  // namespace untax::cli
