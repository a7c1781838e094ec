#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"
#include "bench/suites/collectives.hpp"
#include "bench/suites/gpu_need.hpp"
#include "bench/suites/host.hpp"
#include "bench/suites/operators.hpp"
#include "bench/suites/rma.hpp"
#include "bench_attention.hpp"
#include "bench_collectives.hpp"
#include "bench_flash_attention.hpp"
#include "bench_gemm.hpp"
#include "bench_host.hpp"
#include "bench_locality.hpp"
#include "bench_norm.hpp"
#include "bench_overlap.hpp"
#include "bench_rma.hpp"
#include "bench_shared.hpp"
#include "bench_suites.hpp"
#include "bench_tune.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "names.hpp"
#include "ops/common/registry.hpp"
#include "output.hpp"
#include "output_paths.hpp"
#include "pattern_table.hpp"
#include "run_request.hpp"
#include "spmv.hpp"
#include "terminal.hpp"
#include "trace.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

struct bench_options {
  std::string suite;
  int repeats = 20;
  std::string json;
  std::string trace;
  std::vector<int> rank_counts;
  std::vector<std::int64_t> sizes;
  gemm_bench_request gemm;
  bool sweep = false;
  bool orders = false;
  bool sides = false;
  std::vector<std::string> collectives;
  overlap_request overlap;
  attention_bench_request attention;
  tune_request tune;
  spmv_bench_request spmv;
  norm_bench_request norm;

  /// 0 stands for all GPUs.
  [[nodiscard]] int ranks() const { return rank_counts.empty() ? 0 : rank_counts.front(); }
};

int run_host(const bench_options& options) {
  std::vector<bench::comparison> all;
  {
    bench::host_suite_options suite{options.repeats, {}};
    progress_bar bar("bench host", bench::steps_of(suite));
    suite.progress = [&bar] { bar.advance(); };
    all = bench::run_host_suite(suite);
  }
  if (options.json != "-") show(text_of(all, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(all, options.repeats));
  bool met = true;
  for (const bench::comparison& c : all) met = met && c.met();
  return met ? 0 : 1;
}

void print_operators(const std::vector<bench::operator_figures>& all, int ranks) {
  for (const bench::operator_figures& figures : all) {
    show("{}; {} ranks\n{}\n", figures.what.description, ranks,
         pattern_table(figures.what, ranks, figures.results, 0, width(stream::out),
                       style(stream::out)));
  }
}

int run_operators(const bench_options& options) {
  bench::operator_suite_options suite;
  suite.repeats = options.repeats;
  std::vector<bench::operator_figures> all;
  {
    progress_bar bar("bench operators", bench::steps_of(suite));
    suite.progress = [&bar] { bar.advance(); };
    all = bench::run_operator_suite(suite);
  }
  if (options.json != "-") print_operators(all, suite.ranks);
  if (!options.json.empty()) write_json(options.json, to_json(all, suite.ranks, suite.repeats));
  return 0;
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

std::vector<bench::collective_kind> kinds_named(const std::vector<std::string>& names) {
  const std::vector<bench::collective_kind> all = bench::all_collective_kinds();
  std::vector<std::string> known;
  for (const bench::collective_kind kind : all) known.emplace_back(bench::name_of(kind));
  std::vector<bench::collective_kind> kinds;
  for (const std::string& name : names)
    kinds.push_back(all[place_in("the collective", name, known)]);
  return kinds;
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

/// The name of one of them.
std::string operator_with_gemm(const std::string& name) {
  std::vector<std::string> known;
  for (const operator_entry& entry : operators()) known.push_back(entry.name);
  return known[place_in("--operator", name, known)];
}

/// Suites by their place in `bench_suites`.
int run_suite(std::size_t suite, const bench_options& options) {
  if (suite == 0) return run_host(options);
  if (suite == 1) return run_operators(options);
  if (suite == 2) return run_rma(options);
  if (suite == 3) return run_collectives(options);
  if (suite == 4) {
    gemm_bench_request gemm = options.gemm;
    gemm.traced = !options.trace.empty();
    return run_gemm_bench(gemm, options.sizes, options.repeats, options.json);
  }
  if (suite == 7) {
    attention_bench_request attention = options.attention;
    attention.problems = options.gemm.problems;
    attention.seed = options.gemm.seed;
    return run_attention(attention, options.ranks(), options.repeats, options.json);
  }
  if (suite == 8) {
    tune_request tune = options.tune;
    tune.seconds = options.gemm.seconds;
    return run_tune(tune, options.rank_counts, options.repeats, options.json);
  }
  if (suite == 9) {
    spmv_bench_request spmv = options.spmv;
    spmv.seconds = options.gemm.seconds;
    return run_spmv_bench(spmv, options.repeats, options.json);
  }
  if (suite == 10) {
    bench::shared_options shared;
    if (!options.rank_counts.empty()) shared.rank_counts = options.rank_counts;
    if (!options.tune.operator_name.empty())
      shared.operators = {operator_with_gemm(options.tune.operator_name)};
    shared.sizes = options.sizes;
    if (options.gemm.problems > 0) shared.problems = options.gemm.problems;
    shared.seed = options.gemm.seed;
    shared.repeats = options.repeats;
    shared.partials = partials_of(options.overlap);
    shared.traced = !options.trace.empty();
    return run_shared(shared, options.json);
  }
  if (suite == 11) {
    return run_flash_attention({.repeats = options.repeats,
                                .problems = options.gemm.problems,
                                .seed = options.gemm.seed,
                                .every_order = options.orders,
                                .progress = {}},
                               options.json);
  }
  if (suite == 15 && options.sides) {
    return run_side_bench({.rounds = options.repeats,
                           .seconds = 1,
                           .seed = options.gemm.seed,
                           .begin = {},
                           .progress = {}},
                          options.json);
  }
  if (suite == 15) {
    return run_locality_bench({.repeats = options.repeats,
                               .problems = options.gemm.problems,
                               .seed = options.gemm.seed,
                               .begin = {},
                               .progress = {}},
                              options.json);
  }
  if (suite == 14) return run_norm(options.norm, options.ranks(), options.repeats, options.json);
  overlap_request overlap = options.overlap;
  overlap.problems = options.gemm.problems;
  overlap.seed = options.gemm.seed;
  std::string operator_name = options.suite;
  std::ranges::replace(operator_name, '-', '_');
  return run_overlap(operator_name, overlap, options.ranks(), options.repeats, options.json);
}

int carry_out(const CLI::App& verb, const bench_options& options) {
  const std::size_t suite = place_in("the suite", options.suite, bench_suites());
  refuse_foreign_options(verb, options.suite);
  refuse_same_paths({{"--json", options.json},
                     {"--trace", options.trace},
                     {"--schema", options.spmv.schema},
                     {"--twins", options.spmv.twins}});
  if (options.rank_counts.size() > 1 && suite != 8 && suite != 10) {
    throw error(errc::invalid_argument,
                fmt::format("--ranks is there {} times; the suite {} takes it once",
                            options.rank_counts.size(), options.suite));
  }
  if (options.ranks() == 1 && suite != 7 && suite != 10) {
    throw error(
        errc::invalid_argument,
        fmt::format("--ranks is 1; the suite {} measures what goes between two GPUs or more",
                    options.suite));
  }
  // Of suites on GPUs, which time a recording, a little of each operator is enough to look at.
  const bool on_gpus = suite == 4 || suite == 10;
  require_traceable(options.trace, on_gpus ? memory_kind::cuda : memory_kind::host);
  trace_recording recording(options.trace, on_gpus ? 16 : trace_options{}.events_per_worker);
  const int status = run_suite(suite, options);
  if (recording.active()) {
    const trace_record record = recording.finish();
    if (options.json == "-") return status;
    on_gpus ? show_trace_file(record, options.trace) : show_trace(record, options.trace);
  }
  return status;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("bench", "Measure a suite: " + alternatives(bench_suites()));
  const auto options = std::make_shared<bench_options>();
  verb->add_option("SUITE", options->suite, "what to measure; see below")->required();
  verb->add_option("--repeat", options->repeats, "timed runs of everything")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  verb->add_option("--ranks", options->rank_counts,
                   "GPUs that suites between GPUs use; all of them by default. tune and shared "
                   "take several")
      ->allow_extra_args(false)
      ->check(between(1, 64));
  verb->add_option("--json", options->json, "write the figures as JSON; - for stdout")
      ->check(writable_file());
  verb->add_option(
          "--size", options->sizes,
          "bytes of the vectors of collectives, or rows of A of gemm and shared; several may be "
          "given")
      ->allow_extra_args(false)
      ->check(between(1, std::numeric_limits<int>::max()));
  verb->add_option("--collective", options->collectives,
                   "only these of the suite collectives; several may be given")
      ->allow_extra_args(false);
  verb->add_flag("--sweep", options->sweep,
                 "measure collectives in many ways, and show the quickest");
  add_trace_option(*verb, options->trace);
  verb->add_flag("--sides", options->sides,
                 "of locality: what it gives to place data or blocks by halves of L2");
  verb->add_flag("--orders", options->orders,
                 "time flash-attention in every order of tiles, not only the automatic one");
  add_gemm_options(*verb, options->gemm);
  add_overlap_options(*verb, options->overlap);
  add_attention_options(*verb, options->attention);
  add_tune_options(*verb, options->tune);
  add_spmv_bench_options(*verb, options->spmv);
  add_norm_options(*verb, options->norm);
  verb->footer(bench_footer());
  verb->callback([verb, options, &status] { status = carry_out(*verb, *options); });
}

}  // namespace untax::cli
