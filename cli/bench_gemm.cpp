#include "bench_gemm.hpp"

#include <fmt/format.h>

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

}  // namespace

void print_gemm(const bench::gemm_report& report) {
  using side = table::align;
  table rows({{"m", side::right},
              {"n", side::right},
              {"k", side::right},
              {"us (p10 to p90)", side::right},
              {"rate", side::right},
              {"library, us", side::right},
              {"ratio", side::right},
              {"bar"}});
  for (const bench::gemm_row& row : report.rows) {
    rows.add({std::to_string(row.m), std::to_string(row.n), std::to_string(row.k),
              microseconds(row.time), rate(row), microseconds(row.library_time),
              fmt::format("{:.2f}", row.ratio()), bar(row)});
  }
  show("{}, {}, beside {}\n{}\n", report.device, name_of(report.type), report.library,
       rows.render(width(stream::out), style(stream::out).utf8));
  show("Geometric mean of the ratios: {:.3f} up to m 64; {:.3f} above (bar {:.2f}, {})\n",
       report.mean_ratio(true), report.mean_ratio(false), bench::gemm_mean_bar,
       report.mean_ratio(false) >= bench::gemm_mean_bar ? "met" : "MISSED");
}

}  // namespace untax::cli
