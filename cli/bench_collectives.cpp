#include "bench_reports.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "bench/suites/gpu_need.hpp"
#include "bench_options.hpp"
#include "cell_text.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "names.hpp"
#include "output.hpp"
#include "run_request.hpp"

namespace untax::cli {
namespace {

using bench::collective_figure;
using bench::collective_kind;
using bench::collective_report;
using bench::collective_row;

constexpr std::int64_t kb = 1 << 10;
constexpr std::int64_t mb = 1 << 20;

/// The microseconds that a small collective may take; nothing for others.
std::optional<double> microseconds_allowed(const collective_row& row) {
  if (row.kind == collective_kind::all_reduce) {
    if (row.bytes == 8 * kb) return 6;
    if (row.bytes == 64 * kb) return 8;
    if (row.bytes == 512 * kb) return 14;
    return {};
  }
  if (row.kind != collective_kind::broadcast && row.bytes == 64 * kb) return 6;
  return {};
}

/// The least speedup over NCCL, plain or on windows, whichever is quicker.
double speedup_needed(const collective_row& row) { return row.bytes == 256 * mb ? 1.02 : 1 / 1.05; }

double speedup(const collective_row& row, const collective_figure& f) {
  return row.library()->time->median / f.time->median;
}

bool met(const collective_row& row, const collective_figure& f) {
  if (!f.time) return false;
  const auto most = microseconds_allowed(row);
  if (most && 1e6 * f.time->median > *most) return false;
  return row.library() == nullptr || speedup(row, f) >= speedup_needed(row);
}

std::string bar_text(const collective_row& row) {
  std::string text;
  if (const auto most = microseconds_allowed(row)) text = fmt::format("{:.0f} us ", *most);
  if (row.library() != nullptr) text += fmt::format("{:.2f}x", speedup_needed(row));
  return text;
}

/// Microseconds with about four digits.
std::string collective_time(double seconds) {
  const double us = 1e6 * seconds;
  return fmt::format("{:.{}f}", us, us < 100 ? 2 : us < 1000 ? 1 : 0);
}

void add_row(table& rows, const collective_report& report, const collective_row& row,
             const collective_figure& f) {
  const spread& time = *f.time;
  const bool judged = !f.library;
  rows.add({size_text(row.bytes), f.variant, collective_time(time.median),
            collective_time(time.p10), collective_time(time.p90),
            fmt::format("{:.1f}", 1e-9 * row.sent_bytes(report.ranks) / time.median),
            judged && row.library() != nullptr ? fmt::format("{:.2f}x", speedup(row, f)) : "",
            judged ? bar_text(row) + (met(row, f) ? " met" : " MISSED") : ""});
}

/// The figures of a row that are shown: NCCL's, and the fastest of the others.
std::vector<collective_figure> shown_of(const collective_row& row) {
  constexpr std::size_t most = 5;
  std::vector<collective_figure> shown = row.figures;
  const auto seconds = [](const collective_figure& f) {
    return f.library ? 0.0 : f.time ? f.time->median : 1e9;
  };
  if (shown.size() <= most) return shown;
  std::ranges::stable_sort(shown, {}, seconds);
  shown.resize(most);
  return shown;
}

std::vector<bench::collective_kind> kinds_named(const std::vector<std::string>& names) {
  const std::vector<bench::collective_kind> collective_kinds = bench::all_collective_kinds();
  const std::vector<std::string> known = known_collectives();
  std::vector<bench::collective_kind> kinds;
  for (const std::string& name : names)
    kinds.push_back(collective_kinds[place_in("the collective", name, known)]);
  return kinds;
}

}  // namespace

std::string text_of(const collective_report& report, int columns, text_style how) {
  using side = table::align;
  std::string text = fmt::format(
      "{} x {}, {}; {}\nGB/s are bytes that a rank sends, at the very least, over the time\n",
      report.ranks, report.device, name_of(report.type), report.library);
  for (const collective_kind kind : bench::all_collective_kinds()) {
    table rows({{"size", side::right},
                {"by"},
                {"us", side::right},
                {"p10", side::right},
                {"p90", side::right},
                {"GB/s", side::right},
                {"x NCCL", side::right},
                {"bar"}},
               2);
    bool any = false;
    std::string refusals;
    for (const collective_row& row : report.rows) {
      if (row.kind != kind) continue;
      any = true;
      for (const collective_figure& f : shown_of(row)) {
        if (f.time) {
          add_row(rows, report, row, f);
        } else {
          refusals += fmt::format("{}, {}: {}\n", size_text(row.bytes), f.variant, f.refusal);
        }
      }
    }
    if (any)
      text += fmt::format("\n{}\n{}{}", name_of(kind), rows.render(columns, how.utf8), refusals);
  }
  return text;
}

bool all_met(const collective_report& report) {
  // A caller can choose between both variants, so it is enough if one of them meets the bar.
  return std::ranges::all_of(report.rows, [](const collective_row& row) {
    return std::ranges::any_of(
        row.figures, [&](const collective_figure& f) { return !f.library && met(row, f); });
  });
}

std::vector<bench::collective_variant> swept_variants(std::int64_t bytes) {
  std::vector<bench::collective_variant> variants = {{"automatic", {}},
                                                     {"automatic direct", {.direct = true}}};
  const auto add = [&](std::string name, collective_options o) {
    name += fmt::format(" {} {}p {}w", name_of(o.wire), o.phases, o.workers);
    if (o.how == pattern::fused_specialized) name += " spec";
    if (o.chunk_bytes > 0) name += fmt::format(" {}K", o.chunk_bytes / kb);
    if (o.depth > 0) name += fmt::format(" {}d", o.depth);
    if (o.keepers > 0) name += fmt::format(" {}k", o.keepers);
    if (o.serves > 0) name += fmt::format(" {}s", o.serves);
    variants.push_back({std::move(name), std::move(o)});
  };
  for (const int phases : {1, 2}) {
    // Packets are left out for long vectors, since their memory grows with the message.
    const std::vector<int> packet_workers =
        bytes > 16 * mb ? std::vector<int>{} : std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128};
    for (const int workers : packet_workers)
      add("", {.phases = phases, .wire = wire_kind::packets, .workers = workers});
    for (const std::int64_t chunk : {15 * kb, 30 * kb, 60 * kb, 120 * kb}) {
      collective_options o{.phases = phases, .wire = wire_kind::stores, .chunk_bytes = chunk};
      o.depth = 4;
      o.how = pattern::fused_specialized;
      for (const int serves : {1, 2, 3, 4}) {
        o.serves = serves;
        add("", o);
      }
      o.serves = 0;
      o.how = pattern::fused_sequential;
      o.workers = 128;
      add("", o);
      o.direct = true;
      o.inputs = input_path::rooms;
      add("direct rooms", o);
      o.depth = 0;
      o.inputs = input_path::in_place;
      add("direct", o);
      for (const int keepers : {8, 16, 32}) {
        o.workers = 128 - keepers;
        o.keepers = keepers;
        add("direct", o);
      }
    }
    add("", {.phases = phases, .wire = wire_kind::bulk, .workers = 64, .chunk_bytes = 120 * kb});
  }
  return variants;
}

std::vector<std::string> known_collectives() {
  std::vector<std::string> known;
  for (const bench::collective_kind kind : bench::all_collective_kinds())
    known.emplace_back(bench::name_of(kind));
  return known;
}

int run_collectives(const bench_options& options) {
  bench::collective_suite_options suite;
  suite.ranks = options.ranks();
  suite.repeats = options.repeats;
  for (const std::int64_t size : options.sizes) {
    if (size < 4)
      throw error(errc::invalid_argument,
                  fmt::format("--size {}: vectors of collectives have 4 bytes or more", size));
  }
  suite.sizes = options.sizes.empty() ? bench::default_collective_sizes() : options.sizes;
  if (options.sweep) suite.variants = swept_variants(std::ranges::max(suite.sizes));
  if (!options.collectives.empty()) suite.kinds = kinds_named(options.collectives);
  bench::require_memory(suite, ranks_on_gpus(suite.ranks));
  bench::collective_report report;
  {
    progress_bar bar("bench collectives",
                     static_cast<std::int64_t>(suite.kinds.size() * suite.sizes.size()));
    suite.progress = [&bar] { bar.advance(); };
    report = bench::run_collective_suite(suite);
  }
  if (options.json != "-") show(text_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report, options.repeats));
  return options.sweep || all_met(report) ? 0 : 1;
}

}  // namespace untax::cli
