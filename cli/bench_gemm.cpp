#include "bench_reports.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "bench/suites/gpu_need.hpp"
#include "bench_options.hpp"
#include "cell_text.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "trace.hpp"

namespace untax::cli {
namespace {

using side = table::align;

/// Whether a row is judged with those of few rows of A.
bool is_of_few(const bench::gemm_report& report, const bench::gemm_row& row) {
  return report.drawn ? row.few_rows() : row.skinny();
}

/// Few rows, where reading the weights takes the time. Each row of the grid has a bar.
table table_of_few(const bench::gemm_report& report) {
  std::vector<table::column> columns = {
      {"m", side::right},    {"n", side::right},           {"k", side::right},
      {"us", side::right},   {"p10", side::right},         {"p90", side::right},
      {"TB/s", side::right}, {"library, us", side::right}, {"ratio", side::right}};
  if (!report.drawn) {
    columns.push_back({"asked", side::right});
    columns.push_back({"bar"});
  }
  table rows(columns, 3);
  for (const bench::gemm_row& row : report.rows) {
    if (!is_of_few(report, row)) continue;
    std::vector<std::string> cells = {std::to_string(row.m),
                                      std::to_string(row.n),
                                      std::to_string(row.k),
                                      microseconds(row.time.median),
                                      microseconds(row.time.p10),
                                      microseconds(row.time.p90),
                                      fmt::format("{:.2f}", 1e-12 * row.weight_bytes()),
                                      microseconds(row.library_time.median),
                                      fmt::format("{:.2f}", row.ratio())};
    if (!report.drawn) {
      cells.push_back(row.rate_bar() > 0 ? fmt::format("{:.1f}", 1e-12 * row.rate_bar()) : "");
      cells.emplace_back(row.met() ? "met" : "MISSED");
    }
    rows.add(std::move(cells));
  }
  return rows;
}

/// Many rows, which have a bar for their mean.
table table_of_many(const bench::gemm_report& report) {
  table rows({{"m", side::right},
              {"n", side::right},
              {"k", side::right},
              {"us", side::right},
              {"p10", side::right},
              {"p90", side::right},
              {"TFLOP/s", side::right},
              {"library, us", side::right},
              {"ratio", side::right}},
             3);
  for (const bench::gemm_row& row : report.rows) {
    if (is_of_few(report, row)) continue;
    rows.add({std::to_string(row.m), std::to_string(row.n), std::to_string(row.k),
              microseconds(row.time.median), microseconds(row.time.p10), microseconds(row.time.p90),
              fmt::format("{:.0f}", 1e-12 * row.flops()), microseconds(row.library_time.median),
              fmt::format("{:.2f}", row.ratio())});
  }
  return rows;
}

/// The mean ratio of few rows or of many, with its bar if it has one.
std::string mean(const bench::gemm_report& report, bool few) {
  const double bar = report.mean_bar(few);
  if (bar == 0) return fmt::format("{:.3f}", report.mean_ratio(few));
  return fmt::format("{:.3f} (bar {:.2f}, {})", report.mean_ratio(few), bar,
                     report.mean_ratio(few) >= bar ? "met" : "MISSED");
}

}  // namespace

std::string text_of(const bench::gemm_report& report, int columns, text_style how) {
  const auto few = std::ranges::count_if(
      report.rows, [&](const bench::gemm_row& row) { return is_of_few(report, row); });
  std::string text =
      fmt::format("{}, {}, beside {}\n", report.device, name_of(report.type), report.library);
  if (few > 0) {
    text += fmt::format("\nUp to {} rows: the rate at which weights are read{}\n{}",
                        report.drawn ? 128 : 64,
                        report.drawn ? "" : "; bar: a ratio of 1, and the rate asked",
                        table_of_few(report).render(columns, how.utf8));
    text += fmt::format("Geometric mean of the ratios: {}\n", mean(report, true));
  }
  if (few < std::ssize(report.rows)) {
    text += fmt::format("\nMore rows\n{}Geometric mean of the ratios: {}\n",
                        table_of_many(report).render(columns, how.utf8), mean(report, false));
  }
  const bench::gemm_row* worst = report.worst();
  if (report.drawn && worst != nullptr) {
    text += fmt::format("Least ratio: {:.3f}, m {}, n {}, k {} (bar {:.2f}, {})\n", worst->ratio(),
                        worst->m, worst->n, worst->k, report.least_bar(),
                        worst->ratio() >= report.least_bar() ? "met" : "MISSED");
  }
  if (report.invariant)
    text += fmt::format("Rows of the same bits in any batch take {:.3f} times as long (bar 1.15)\n",
                        report.cost_of_invariant());
  if (report.traced) text += text_of(report.cost_of_trace());
  if (report.left_out > 0)
    text += fmt::format("Time was over: {} problems were not measured\n", report.left_out);
  return text;
}

int run_gemm_bench(const bench_options& options) {
  const gemm_bench_request& request = options.gemm;
  const bool traced = !options.trace.empty();
  if (options.problems > 0 && !options.sizes.empty())
    throw error(errc::invalid_argument,
                "--problems draws rows of A, and --size sets them; leave one of them out");
  if (traced && (request.every_plan || request.rasters || request.invariant))
    throw error(
        errc::invalid_argument,
        "--trace times the plan that is taken; leave out --every-plan, --rasters and --invariant");
  bench::gemm_suite_options suite;
  suite.repeats = options.repeats;
  suite.sizes = options.sizes;
  suite.problems = options.problems;
  suite.seed = options.seed;
  suite.least_rows = request.least_rows;
  suite.most_rows = request.most_rows;
  suite.every_plan = request.every_plan;
  suite.rasters = request.rasters;
  suite.invariant = request.invariant;
  suite.traced = traced;
  suite.seconds = options.seconds;
  bench::require_memory(suite);
  bench::gemm_report report;
  {
    progress_bar bar("bench gemm", bench::steps_of(suite));
    suite.progress = [&bar] { bar.advance(); };
    report = bench::run_gemm_suite(suite);
  }
  if (options.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report, options.repeats));
  for (const std::string& wrong : report.wrong) complain(wrong);
  return report.met() && report.wrong.empty() ? 0 : 1;
}

}  // namespace untax::cli
