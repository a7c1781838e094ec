#include "bench_reports.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "bench_options.hpp"
#include "cell_text.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "src/taxes/time_text.hpp"

namespace untax::cli {
namespace {

using bench::rma_figure;
using bench::rma_table;

constexpr const char* title_of(rma_table t) {
  switch (t) {
    case rma_table::blocks:
      return "Rates from rank 0 to rank 1 by number of blocks, 256 MB";
    case rma_table::sizes:
      return "Rates from rank 0 to rank 1 by size, 132 blocks";
    case rma_table::pairs:
      return "Rates of every pair, 64 MB, 132 blocks";
    case rma_table::all:
      return "Rates of every rank to its next, all at once, 256 MB";
    case rma_table::latency:
      return "Times between kernels that run";
    case rma_table::atomics:
      return "Atomics of rank 0 on words of 8 bytes at rank 1";
  }
  return "";
}

std::string verdict(const bench::rma_report& report, const rma_figure& f) {
  if (f.bar == 0) return "";
  if (f.met()) return "met";
  return met_by_any(report, f) ? "other" : "MISSED";
}

std::string peers(const rma_figure& f) {
  return f.to < 0 ? "all" : fmt::format("{} - {}", f.from, f.to);
}

std::string rates_of(const bench::rma_report& report, rma_table which, int columns,
                     text_style how) {
  using side = table::align;
  table rows({{"verb"},
              {"method"},
              {"ranks", side::right},
              {"blocks", side::right},
              {"size", side::right},
              {"GB/s", side::right},
              {"p10", side::right},
              {"p90", side::right},
              {"of link", side::right},
              {"bar", side::right},
              {""}},
             5);
  for (const rma_figure& f : report.figures) {
    if (f.table != which) continue;
    const auto rate = [&](double seconds) {
      return fmt::format("{:.0f}", 1e-9 * static_cast<double>(f.bytes) / seconds);
    };
    rows.add({f.what, f.method, peers(f), std::to_string(f.blocks), size_text(f.bytes),
              rate(f.time.median), rate(f.time.p90), rate(f.time.p10),
              fmt::format("{:.2f}", f.rate() / f.bound),
              f.bar == 0 ? "" : fmt::format("{:.0f}", 1e-9 * f.bar), verdict(report, f)});
  }
  return fmt::format("{}\n{}\n", title_of(which), rows.render(columns, how.utf8));
}

std::string latencies_of(const bench::rma_report& report, int columns, text_style how) {
  using side = table::align;
  table rows({{"what"},
              {"method"},
              {"us", side::right},
              {"p10", side::right},
              {"p90", side::right},
              {"bare flag", side::right},
              {"bar", side::right},
              {""}},
             2);
  for (const rma_figure& f : report.figures) {
    if (f.table != rma_table::latency) continue;
    const auto us = [](double seconds) { return fmt::format("{:.2f}", 1e6 * seconds); };
    rows.add({f.what, f.method, us(f.time.median), us(f.time.p10), us(f.time.p90), us(f.bound),
              f.bar == 0 ? "" : us(f.bar), verdict(report, f)});
  }
  return fmt::format("{}\n{}\n", title_of(rma_table::latency), rows.render(columns, how.utf8));
}

std::string atomics_of(const bench::rma_report& report, int columns, text_style how) {
  using side = table::align;
  table rows({{"operation"},
              {"order"},
              {"ns", side::right},
              {"p10", side::right},
              {"p90", side::right},
              {"million a second", side::right}},
             2);
  for (const rma_figure& f : report.figures) {
    if (f.table != rma_table::atomics) continue;
    const auto ns = [](double seconds) { return fmt::format("{:.3g}", 1e9 * seconds); };
    rows.add({f.what, f.method, ns(f.time.median), ns(f.time.p10), ns(f.time.p90),
              fmt::format("{:.3g}", 1e-6 / f.time.median)});
  }
  return fmt::format("{}\n{}\n", title_of(rma_table::atomics), rows.render(columns, how.utf8));
}

}  // namespace

std::string text_of(const bench::rma_report& report, int columns, text_style how) {
  std::string text = fmt::format("{} x {}; other: the bar is met by another method\n\n",
                                 report.ranks, report.device) +
                     latencies_of(report, columns, how) + atomics_of(report, columns, how);
  for (const rma_table t : {rma_table::blocks, rma_table::sizes, rma_table::pairs, rma_table::all})
    text += rates_of(report, t, columns, how);
  return text;
}

std::vector<std::string> missed_bars(const bench::rma_report& report) {
  std::vector<std::string> missed;
  for (const rma_figure& f : report.figures) {
    if (f.bar > 0 && !met_by_any(report, f))
      missed.push_back(fmt::format("{}, {}, {} blocks", f.what, f.method, f.blocks));
  }
  return missed;
}

int run_rma(const bench_options& options) {
  bench::rma_suite_options suite{options.ranks(), options.repeats, {}};
  bench::rma_report report;
  {
    progress_bar bar("bench rma", bench::steps_of(suite));
    suite.progress = [&bar] { bar.advance(); };
    report = bench::run_rma_suite(suite);
  }
  if (options.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report, options.repeats));
  for (const std::string& missed : missed_bars(report)) complain("missed its bar: " + missed);
  return missed_bars(report).empty() ? 0 : 1;
}

}  // namespace untax::cli
