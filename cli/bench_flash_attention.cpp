#include "bench_reports.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bench_options.hpp"
#include "files.hpp"
#include "json_parts.hpp"

namespace untax::cli {
namespace {

using side = table::align;

std::string to_json(const bench::flash_report& report, int repeats) {
  json out = head("untax-bench-flash-attention");
  out["device"] = report.device;
  out["repeats"] = repeats;
  out["rows"] = json::array();
  for (const bench::flash_row& row : report.rows) {
    const bench::flash_problem& p = row.problem;
    json times = json::object();
    for (const bench::flash_figure& f : row.figures) times[f.order] = from(f.time);
    out["rows"].push_back({{"batch", p.batch},
                           {"heads", p.heads},
                           {"kv_heads", p.kv_heads},
                           {"head_dim", p.head_dim},
                           {"queries", p.queries},
                           {"keys", p.keys},
                           {"causal", p.causal},
                           {"type", name_of(p.type)},
                           {"flops", p.flops()},
                           {"seconds", std::move(times)}});
  }
  return text_of(out);
}

}  // namespace

std::string text_of(const bench::flash_report& report, int columns, text_style how) {
  std::vector<table::column> heads = {{"batch", side::right},
                                      {"heads", side::right},
                                      {"width", side::right},
                                      {"keys", side::right},
                                      {"causal"},
                                      {"us", side::right},
                                      {"p10", side::right},
                                      {"p90", side::right},
                                      {"TFLOP/s", side::right}};
  if (report.rows.empty()) return "nothing was measured\n";
  for (std::size_t i = 1; i < report.rows.front().figures.size(); ++i)
    heads.push_back({report.rows.front().figures[i].order, side::right});
  table rows(heads, 5);
  for (const bench::flash_row& row : report.rows) {
    const bench::flash_problem& p = row.problem;
    const spread& time = row.figures.front().time;
    std::vector<std::string> cells = {std::to_string(p.batch),
                                      fmt::format("{}/{}", p.heads, p.kv_heads),
                                      std::to_string(p.head_dim),
                                      fmt::format("{}", p.keys),
                                      p.causal ? "yes" : "no",
                                      fmt::format("{:.1f}", 1e6 * time.median),
                                      fmt::format("{:.1f}", 1e6 * time.p10),
                                      fmt::format("{:.1f}", 1e6 * time.p90),
                                      fmt::format("{:.0f}", 1e-12 * p.flops() / time.median)};
    for (std::size_t i = 1; i < row.figures.size(); ++i)
      cells.push_back(fmt::format("{:.0f}", 1e-12 * p.flops() / row.figures[i].time.median));
    rows.add(std::move(cells));
  }
  return fmt::format("{}\n\n{}", report.device, rows.render(columns, how.utf8));
}

int run_flash_attention(const bench_options& options) {
  bench::flash_suite_options suite{.repeats = options.repeats,
                                   .problems = options.problems,
                                   .seed = options.seed,
                                   .every_order = options.orders,
                                   .progress = {}};
  bench::flash_report report;
  {
    progress_bar bar("bench flash-attention",
                     static_cast<std::int64_t>(bench::flash_problems(suite).size()));
    suite.progress = [&bar] { bar.advance(); };
    report = bench::run_flash_suite(suite);
  }
  if (options.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report, suite.repeats));
  return 0;
}

}  // namespace untax::cli
