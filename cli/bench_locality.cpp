#include "bench_reports.hpp"

#include <optional>

#include <fmt/format.h>

#include "bench_options.hpp"
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
    json object = {{"kernel", row.problem.name},
                   {"sizes", row.problem.sizes},
                   {"order", row.problem.order},
                   {"blocks", row.blocks},
                   {"requested_bytes", row.requested_bytes},
                   {"launches", row.launches},
                   {"seconds", from(row.time)}};
    if (row.simulated) {
      object["simulated"] = {{"seconds", row.simulated->seconds},
                             {"read_hit_rate", row.simulated->near_reads.rate()},
                             {"memory_bytes", row.simulated->memory_bytes}};
    }
    out["rows"].push_back(std::move(object));
  }
  return text_of(out);
}

std::string to_json(const bench::side_report& report, const bench::side_suite_options& suite) {
  json out = head("untax-bench-sides");
  out["device"] = report.device;
  out["rounds"] = suite.rounds;
  out["seconds_each"] = suite.seconds;
  out["multiprocessors"] = {report.sms[0], report.sms[1]};
  out["near_cycles"] = report.near_cycles;
  out["far_cycles"] = report.far_cycles;
  out["share_of_side_0"] = report.share_of_side_0;
  out["pairs_apart"] = report.pairs_apart;
  if (report.watts_most) out["watts_most"] = *report.watts_most;
  out["rows"] = json::array();
  for (const bench::side_row& row : report.rows) {
    json object = {
        {"kernel", row.kernel}, {"placement", row.placement}, {"seconds", from(row.time)}};
    if (row.bytes > 0) object["bytes"] = row.bytes;
    if (row.watts) object["watts"] = from(*row.watts);
    out["rows"].push_back(std::move(object));
  }
  return text_of(out);
}

std::string words_of(const locality::kernel::sizes& sizes) {
  std::string text;
  for (const auto& [name, value] : sizes)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

int run_sides(const bench_options& options) {
  bench::side_suite_options suite{
      .rounds = options.repeats, .seconds = 1, .seed = options.seed, .begin = {}, .progress = {}};
  bench::side_report report;
  {
    std::optional<progress_bar> bar;
    suite.begin = [&bar](std::int64_t rows) { bar.emplace("bench locality", rows); };
    suite.progress = [&bar](std::int64_t rows) { bar->advance(rows); };
    report = bench::run_side_suite(suite);
  }
  if (options.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report, suite));
  return 0;
}

int run_replays(const bench_options& options) {
  bench::replay_suite_options suite{.repeats = options.repeats,
                                    .problems = options.problems,
                                    .seed = options.seed,
                                    .begin = {},
                                    .progress = {}};
  bench::replay_report report;
  {
    std::optional<progress_bar> bar;
    suite.begin = [&bar](std::int64_t problems) { bar.emplace("bench locality", problems); };
    suite.progress = [&bar] { bar->advance(); };
    report = bench::run_replay_suite(suite);
  }
  if (options.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report, suite.repeats));
  return 0;
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
  const std::string header =
      report.described.empty()
          ? "no description has its name, so nothing is simulated"
          : "simulated: us and hits of reads in L2, by devices/" + report.described + ".json";
  return fmt::format("{}: reads and writes of kernels, block by block\n{}\n\n{}", report.device,
                     header, rows.render(columns, how.utf8));
}

std::string text_of(const bench::side_report& report, int columns, text_style how) {
  table rows({{"kernel"},
              {"placement"},
              {"us", side::right},
              {"GB/s", side::right},
              {"W", side::right},
              {"mJ a run", side::right}},
             2);
  for (const bench::side_row& row : report.rows) {
    const double seconds = row.time.median;
    rows.add({row.kernel, row.placement, fmt::format("{:.1f}", 1e6 * seconds),
              row.bytes > 0 ? fmt::format("{:.0f}", 1e-9 * row.bytes / seconds) : "-",
              row.watts ? fmt::format("{:.1f}", row.watts->median) : "-",
              row.watts ? fmt::format("{:.2f}", 1e3 * row.watts->median * seconds) : "-"});
  }
  return fmt::format(
      "{}: {} multiprocessors at one half of L2, {} at the other; an atomic takes {:.0f} cycles "
      "at\n"
      "home and {:.0f} on the other side; {:.1f} % of the chunks of 4 KiB are at home on the "
      "first,\n"
      "and {:.1f} % of neighbouring pairs apart{}\n\n{}",
      report.device, report.sms[0], report.sms[1], report.near_cycles, report.far_cycles,
      100 * report.share_of_side_0, 100 * report.pairs_apart,
      report.watts_most ? fmt::format("; the device is held to {:.0f} W", *report.watts_most) : "",
      rows.render(columns, how.utf8));
}

int run_locality_bench(const bench_options& options) {
  return options.sides ? run_sides(options) : run_replays(options);
}

}  // namespace untax::cli
