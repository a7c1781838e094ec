#include "bench_reports.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "bench/suites/gpu_need.hpp"
#include "bench_options.hpp"
#include "cell_text.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "names.hpp"
#include "ops/common/registry.hpp"
#include "output.hpp"
#include "run_request.hpp"

namespace untax::cli {
namespace {

using bench::overlap_report;
using bench::overlap_row;

std::string ratio(double numerator, double denominator) {
  return numerator > 0 && denominator > 0 ? fmt::format("{:.2f}", numerator / denominator) : "";
}

/// "64 x 8192 x 4096", with ", k" if A is gathered by k.
std::string shape_text(const overlap_report& report, const overlap_row& row) {
  std::string text = fmt::format("{} x {} x {}", row.problem.m, row.problem.n, row.problem.k);
  const bool gathers = operator_named(report.operator_name).gathers;
  if (gathers && row.problem.gather == gather_axis::k) text += ", k";
  return text;
}

/// ", fp32 partials" for operators that send partial results.
std::string partials_text(const overlap_report& report) {
  if (!operator_named(report.operator_name).sums_to || report.rows.empty()) return "";
  return fmt::format(", {} partials", name_of(partials_type(report.rows.front().problem)));
}

/// The times of all patterns, below their shapes.
std::string patterns_of(const overlap_report& report, int columns, text_style how) {
  using side = table::align;
  table rows({{"m x n x k"},
              {"us", side::right},
              {"p10", side::right},
              {"p90", side::right},
              {"/ bound", side::right},
              {"error", side::right}});
  std::vector<std::string> refusals;
  for (const overlap_row& row : report.rows) {
    if (&row != &report.rows.front()) rows.rule();
    rows.add({shape_text(report, row)});
    for (const pattern_figure& f : row.figures) {
      if (!f.time) {
        if (std::ranges::find(refusals, f.refusal) == refusals.end()) refusals.push_back(f.refusal);
        continue;
      }
      rows.add({"  " + f.by, microseconds_or("", f.time->median), microseconds_or("", f.time->p10),
                microseconds_or("", f.time->p90), f.how ? ratio(f.time->median, row.bound()) : "",
                !f.how         ? ""
                : row.right(f) ? fmt::format("{:.1e}", f.error)
                               : fmt::format("{:.1e} WRONG", f.error)});
    }
  }
  std::string text = rows.render(columns, how.utf8);
  for (const std::string& refusal : refusals) text += fmt::format("left out: {}\n", refusal);
  return text;
}

std::string summary_of(const overlap_report& report, int columns, text_style how) {
  using side = table::align;
  table rows({{"m x n x k"},
              {"best"},
              {"us", side::right},
              {"bound", side::right},
              {"/ bound", side::right},
              {"eager", side::right},
              {"graph", side::right},
              {"limit"},
              {"GEMM", side::right},
              {"cuBLASLt", side::right},
              {"NCCL", side::right}});
  for (const overlap_row& row : report.rows) {
    const pattern_figure* best = row.best();
    const double time = best != nullptr ? best->time->median : 0;
    rows.add({shape_text(report, row), best != nullptr ? best->by : "-", microseconds_or("", time),
              microseconds_or("", row.bound()), ratio(time, row.bound()),
              ratio(row.seconds_of("bulk_library eager"), time),
              ratio(row.seconds_of("bulk_library graph"), time),
              row.link_bound > row.compute_bound ? "link" : "compute",
              microseconds_or("", row.seconds_of("GEMM alone")),
              microseconds_or("", row.seconds_of("cuBLASLt alone")),
              microseconds_or("", row.seconds_of("NCCL alone"))});
  }
  return rows.render(columns, how.utf8);
}

bench::overlap_options options_of(const std::string& operator_name, const bench_options& asked) {
  using enum bench::overlap_shapes;
  const overlap_request& request = asked.overlap;
  const int ranks = asked.ranks();
  bench::overlap_options options;
  options.operator_name = operator_name;
  options.ranks = ranks;
  options.shapes =
      place_in("--suite", request.shapes, {"prefill", "decode"}) == 0 ? prefill : decode;
  const std::vector<gather_axis> axes = {gather_axis::rows, gather_axis::k};
  const gather_axis gather = named("--gather", request.gather, axes);
  const std::optional<dtype> partials = partials_of(request);
  if (asked.problems > 0) {
    if (!request.m.empty() || request.n != 0 || request.k != 0) {
      throw error(errc::invalid_argument,
                  "--problems draws rows for the weights of the suite, and -m, -n and -k set them; "
                  "leave one or the others out");
    }
    options.problems =
        random_overlap_problems(operator_name, options.shapes, asked.problems, asked.seed);
    options.seed = asked.seed;
  } else if (request.n == 0 && request.k == 0) {
    options.problems = overlap_problems(operator_name, options.shapes,
                                        ranks == 0 ? gpus_here() : ranks, request.m);
  } else {
    for (const std::int64_t m : request.m) {
      options.problems.push_back(
          {.m = m, .n = request.n, .k = request.k, .type = dtype::bf16, .gather = gather});
    }
  }
  if (options.problems.empty() || (request.n == 0) != (request.k == 0)) {
    throw error(errc::invalid_argument,
                fmt::format("there is nothing to measure: give -m, -n and -k for a shape, or only "
                            "values of -m that shapes of suite {} have",
                            request.shapes));
  }
  for (gemm_problem& p : options.problems) p.partials = partials;
  if (request.patterns.empty()) {
    for (const pattern how : all_patterns) {
      if (how != pattern::bulk_library) options.patterns.push_back(how);
    }
  }
  for (const std::string& text : request.patterns)
    options.patterns.push_back(named("--patterns", text, all_patterns));
  return options;
}

}  // namespace

std::string text_of(const overlap_report& report, int columns, text_style how) {
  std::string text = fmt::format(
      "{}, {}, {} x {}, {}{}; {}\nlink {:.0f} GB/s out of each rank, memory {:.2f} TB/s\n\n{}\n"
      "The quickest pattern in a graph; times in us. eager, graph: the time of bulk_library over "
      "that of the pattern. limit: the source of the bound\n{}",
      report.operator_name, name_of(report.shapes), report.ranks, report.device,
      name_of(report.type), partials_text(report), report.library, 1e-9 * report.link_rate,
      1e-12 * report.memory_rate, patterns_of(report, columns, how),
      summary_of(report, columns, how));
  for (const char* label : {automatic_exact, automatic_capacity}) {
    if (const auto factors = report.library_over(label))
      text += fmt::format("bulk_library graph / {}: mean {:.3f}, least {:.3f}\n", label,
                          factors->mean, factors->least);
  }
  for (const bench::overlap_bar& b : report.bars()) {
    text += fmt::format("{}: {:.3f} ({} {:.2f}, {})\n", b.what, b.value,
                        b.at_most ? "at most" : "at least", b.bar, b.met() ? "met" : "MISSED");
  }
  return text;
}

std::optional<dtype> partials_of(const overlap_request& request) {
  if (!request.partials) return std::nullopt;
  return named("--partials", *request.partials, std::vector<dtype>{dtype::bf16, dtype::f32});
}

int run_overlap(const std::string& operator_name, const bench_options& asked) {
  bench::overlap_options options = options_of(operator_name, asked);
  options.repeats = asked.repeats;
  bench::require_memory(options, ranks_on_gpus(asked.ranks()));
  overlap_report report;
  {
    progress_bar bar("bench " + operator_name, static_cast<std::int64_t>(options.problems.size()));
    options.progress = [&bar] { bar.advance(); };
    report = run_overlap_suite(options);
  }
  if (asked.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!asked.json.empty()) write_json(asked.json, to_json(report, asked.repeats));
  return report.met() ? 0 : 1;
}

}  // namespace untax::cli
