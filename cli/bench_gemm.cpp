#include "bench_gemm.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"
#include "bench/suites/gemm.hpp"
#include "bench/suites/gpu_need.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "terminal.hpp"

namespace untax::cli {
namespace {

std::string microseconds(const spread& time) {
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", 1e6 * time.median, 1e6 * time.p10,
                     1e6 * time.p90);
}

std::string rate(const bench::gemm_row& row) {
  return row.skinny() ? fmt::format("{:.2f} TB/s", 1e-12 * row.weight_bytes())
                      : fmt::format("{:.0f} TFLOP/s", 1e-12 * row.flops());
}

std::string bar(const bench::gemm_row& row) {
  if (!row.skinny()) return "";
  const std::string rate =
      row.rate_bar() > 0 ? fmt::format(", {:.1f} TB/s", 1e-12 * row.rate_bar()) : "";
  return fmt::format("1.00{} {}", rate, row.met() ? "met" : "MISSED");
}

/// Of the ratios of few rows or of many, with its bar if it has one.
std::string mean(const bench::gemm_report& report, bool few) {
  const double bar = report.mean_bar(few);
  if (bar == 0) return fmt::format("{:.3f}", report.mean_ratio(few));
  return fmt::format("{:.3f} (bar {:.2f}, {})", report.mean_ratio(few), bar,
                     report.mean_ratio(few) >= bar ? "met" : "MISSED");
}

void print_gemm(const bench::gemm_report& report) {
  using side = table::align;
  table rows({{"m", side::right},
              {"n", side::right},
              {"k", side::right},
              {"us (p10 to p90)", side::right},
              {"rate", side::right},
              {"library, us", side::right},
              {"ratio", side::right},
              {report.drawn ? "" : "bar"}});
  for (const bench::gemm_row& row : report.rows) {
    rows.add({std::to_string(row.m), std::to_string(row.n), std::to_string(row.k),
              microseconds(row.time), rate(row), microseconds(row.library_time),
              fmt::format("{:.2f}", row.ratio()), report.drawn ? "" : bar(row)});
  }
  show("{}, {}, beside {}\n{}\n", report.device, name_of(report.type), report.library,
       rows.render(width(stream::out), style(stream::out).utf8));
  show("Geometric mean of the ratios: {} up to m {}; {} above\n", mean(report, true),
       report.drawn ? 128 : 64, mean(report, false));
  const bench::gemm_row* worst = report.worst();
  if (report.drawn && worst != nullptr)
    show("Least ratio: {:.3f}, m {}, n {}, k {} (bar {:.2f}, {})\n", worst->ratio(), worst->m,
         worst->n, worst->k, report.least_bar(),
         worst->ratio() >= report.least_bar() ? "met" : "MISSED");
  if (report.left_out > 0) show("Time was over: {} problems were not measured\n", report.left_out);
}

}  // namespace

void add_gemm_options(CLI::App& verb, gemm_bench_request& request) {
  constexpr int most_problems = 100'000;
  verb.add_option("--problems", request.problems,
                  "draw so many problems of gemm at random, instead of its grid")
      ->check(between(1, most_problems));
  verb.add_option("--seed", request.seed, "draw them from this seed")->capture_default_str();
  verb.add_flag("--every-plan", request.every_plan,
                "time every plan of gemm that the model does not rule out; --json has all times");
  verb.add_option("--seconds", request.seconds, "begin no problem of gemm later than this")
      ->check(between(1, 86'400));
}

int run_gemm_bench(const gemm_bench_request& request, const std::vector<std::int64_t>& sizes,
                   int repeats, const std::string& json) {
  if (request.problems > 0 && !sizes.empty())
    throw error(errc::invalid_argument, "--problems draws rows of A; --size says which there are");
  bench::gemm_suite_options suite;
  suite.repeats = repeats;
  suite.sizes = sizes;
  suite.problems = request.problems;
  suite.seed = request.seed;
  suite.every_plan = request.every_plan;
  suite.seconds = request.seconds;
  bench::require_memory(suite);
  bench::gemm_report report;
  {
    progress_bar bar("bench gemm", bench::steps_of(suite));
    suite.progress = [&bar] { bar.advance(); };
    report = bench::run_gemm_suite(suite);
  }
  if (json != "-") print_gemm(report);
  if (!json.empty()) write_json(json, to_json(report, repeats));
  for (const std::string& wrong : report.wrong) complain(wrong);
  return report.met() && report.wrong.empty() ? 0 : 1;
}

}  // namespace untax::cli
