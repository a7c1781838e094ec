#include "bench_locality.hpp"

#include <optional>

#include <fmt/format.h>

#include "files.hpp"
#include "json_parts.hpp"

namespace untax::cli {
namespace {

using side = table::align;

std::string to_json(const bench::replay_report& report, int repeats) {
  json out = head("untax-bench-locality");
  out["device"] = report.device;
  out["described"] = report.described;
  out["repeats"] = repeats;
  out["rows"] = json::array();
  for (const bench::replay_row& row : report.rows) {
    json one = {{"kernel", row.problem.name},
                {"sizes", row.problem.sizes},
                {"order", row.problem.order},
                {"blocks", row.blocks},
                {"requested_bytes", row.requested_bytes},
                {"launches", row.launches},
                {"seconds", from(row.time)}};
    if (row.simulated) {
      one["simulated"] = {{"seconds", row.simulated->seconds},
                          {"read_hit_rate", row.simulated->near_reads.rate()},
                          {"memory_bytes", row.simulated->memory_bytes}};
    }
    out["rows"].push_back(std::move(one));
  }
  return text_of(out);
}

std::string words_of(const locality::kernel::sizes& sizes) {
  std::string text;
  for (const auto& [name, value] : sizes)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

}  // namespace

std::string text_of(const bench::replay_report& report, int columns, text_style how) {
  if (report.rows.empty()) return "nothing was measured\n";
  table rows({{"kernel"},
              {"sizes"},
              {"order"},
              {"us", side::right},
              {"GB/s", side::right},
              {"simulated", side::right},
              {"hits", side::right}},
             3);
  for (const bench::replay_row& row : report.rows) {
    const double seconds = row.time.median;
    rows.add(
        {row.problem.name, words_of(row.problem.sizes), row.problem.order,
         fmt::format("{:.1f}", 1e6 * seconds),
         fmt::format("{:.0f}", 1e-9 * row.requested_bytes / seconds),
         row.simulated ? fmt::format("{:.1f}", 1e6 * row.simulated->seconds) : "-",
         row.simulated ? fmt::format("{:.1f} %", 100 * row.simulated->near_reads.rate()) : "-"});
  }
  const std::string by =
      report.described.empty()
          ? "no description has its name, so nothing is simulated"
          : "simulated: us and hits of reads in L2, by devices/" + report.described + ".json";
  return fmt::format("{}: reads and writes of kernels, block by block\n{}\n\n{}", report.device, by,
                     rows.render(columns, how.utf8));
}

int run_locality_bench(bench::replay_suite_options suite, const std::string& file) {
  bench::replay_report report;
  {
    std::optional<progress_bar> bar;
    suite.begin = [&bar](std::int64_t problems) { bar.emplace("bench locality", problems); };
    suite.progress = [&bar] { bar->advance(); };
    report = bench::run_replay_suite(suite);
  }
  if (file != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!file.empty()) write_json(file, to_json(report, suite.repeats));
  return 0;
}

}  // namespace untax::cli
