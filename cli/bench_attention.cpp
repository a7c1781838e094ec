#include "bench_reports.hpp"

#include <fmt/format.h>

#include "bench/suites/gpu_need.hpp"
#include "bench_options.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "names.hpp"
#include "output.hpp"

namespace untax::cli {
namespace {

using bench::attention_report;
using bench::attention_row;

/// A pattern that is measured between ranks, and the title of its column.
struct measured_column {
  const char* by;
  const char* title;
};
constexpr measured_column measured[] = {{"fused_sequential", "fused"},
                                        {"producer_consumer", "p.-c."},
                                        {"bulk_synchronous", "b.-s."},
                                        {"bulk_library", "library"},
                                        {"bulk_library eager", "eager"}};

std::string attention_time(double seconds) {
  if (!(seconds > 0)) return "-";
  return seconds < 1e-3 ? fmt::format("{:.1f}", 1e6 * seconds)
                        : fmt::format("{:.0f}", 1e6 * seconds);
}

}  // namespace

std::vector<std::string> known_heads() {
  std::vector<std::string> names;
  for (const auto& heads : bench::known_attention_heads()) names.push_back(heads.name);
  return names;
}

std::string text_of(const attention_report& report, int columns, text_style how) {
  using side = table::align;
  std::vector<table::column> heads = {{"heads"},
                                      {"batch", side::right},
                                      {"keys", side::right},
                                      {"MB", side::right},
                                      {"bound", side::right},
                                      {"local", side::right},
                                      {"/bound", side::right}};
  for (const auto& c : measured) heads.push_back({c.title, side::right});
  heads.push_back({"gain", side::right});
  table rows(heads, 3);
  for (const attention_row& row : report.rows) {
    const double local = row.seconds_of("local");
    std::vector<std::string> cells = {row.name,
                                      std::to_string(row.problem.batch),
                                      std::to_string(row.problem.keys),
                                      fmt::format("{:.0f}", 1e-6 * row.bytes()),
                                      attention_time(report.bound(row)),
                                      attention_time(local),
                                      fmt::format("{:.2f}", local / report.bound(row))};
    for (const auto& c : measured) cells.push_back(attention_time(row.seconds_of(c.by)));
    const double fused = row.seconds_of("fused_sequential");
    cells.push_back(fused > 0 ? fmt::format("{:.2f}", row.seconds_of("bulk_library") / fused)
                              : "-");
    rows.add(cells);
  }
  return fmt::format(
      "{} x {}, {}, us of one run in a graph, beside {}; memory is read at {:.2f} TB/s\n"
      "fused: fused_sequential, p.-c.: producer_consumer, b.-s.: bulk_synchronous, library: "
      "bulk_library, eager: the same without a graph; /bound: local over it, gain: library over "
      "fused\n{}\n",
      report.ranks, report.device, name_of(report.type), report.library, 1e-12 * report.memory_rate,
      rows.render(columns, how.utf8));
}

int run_attention(const bench_options& options) {
  const attention_bench_request& request = options.attention;
  if (options.problems > 0 &&
      !(request.heads.empty() && request.batches.empty() && request.keys.empty())) {
    throw error(errc::invalid_argument,
                "--problems draws heads, batch and keys, and --heads, --batch and --keys set them; "
                "leave one "
                "or the others out");
  }
  bench::attention_suite_options suite;
  suite.ranks = options.ranks();
  suite.repeats = options.repeats;
  suite.problems = options.problems;
  suite.seed = options.seed;
  suite.batches =
      request.batches.empty() ? std::vector<std::int64_t>{1, 4, 8, 16} : request.batches;
  suite.keys = request.keys.empty()
                   ? std::vector<std::int64_t>{8 << 10,   16 << 10,  32 << 10, 64 << 10,
                                               128 << 10, 256 << 10, 512 << 10}
                   : request.keys;
  suite.page_size = request.page_size;
  if (request.narrow) suite.partials = dtype::bf16;
  const auto& known = bench::known_attention_heads();
  const std::vector<std::string> names = known_heads();
  for (const std::string& name : request.heads)
    suite.heads.push_back(known[place_in("--heads", name, names)]);
  if (suite.heads.empty()) suite.heads.push_back(known.front());

  bench::require_memory(suite);
  attention_report report;
  {
    progress_bar bar("bench flash-decode",
                     static_cast<std::int64_t>(bench::attention_problems(suite).size()));
    suite.progress = [&bar] { bar.advance(); };
    report = bench::run_attention_suite(suite);
  }
  if (options.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report, options.repeats));
  bool met = true;
  for (const bench::attention_bar& b : report.bars()) {
    met = met && b.met();
    if (options.json == "-") continue;
    show("{}: {:.2f}, {} {:.2f} asked, {}\n", b.what, b.value, b.at_most ? "at most" : "at least",
         b.bar, b.met() ? "met" : "MISSED");
  }
  return met ? 0 : 1;
}

}  // namespace untax::cli
