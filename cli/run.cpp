#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"
#include "files.hpp"
#include "names.hpp"
#include "run_operator.hpp"
#include "run_request.hpp"
#include "spmv.hpp"
#include "trace.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

/// The options that all operators have, as written on the command line.
struct run_options {
  run_place place;
  std::string pattern_name = "automatic";
  int repeats = 20;
  std::uint64_t seed = 1;
  spmv_request spmv;
  double tolerance = 0;
  int wait_limit = 0;
  bool verify = false;
  bool explain = false;
  bool processes = false;
  std::string json;
  std::string trace;
};

std::vector<std::string> known_patterns() {
  std::vector<std::string> known;
  for (const pattern p : all_patterns) known.emplace_back(name_of(p));
  known.emplace_back("all");
  return known;
}

std::vector<pattern> patterns_named(const std::string& text, const trial_subject& what) {
  const std::size_t place = place_in("--pattern", text, known_patterns());
  if (place == all_patterns.size()) return bench::all_patterns_of(what);
  if (what.memory == memory_kind::host && !on_host(all_patterns[place])) {
    throw error(errc::invalid_argument,
                fmt::format("{} is a pattern of GPUs, and this runs on the host; --backend cuda or "
                            "--dtype bf16 selects GPUs",
                            text));
  }
  return {all_patterns[place]};
}

/// The request for an operator, whose options `own` has.
run_request request_of(const CLI::App& verb, const CLI::App& own, run_operator& chosen,
                       const run_options& o) {
  run_request request;
  if (!o.verify && verb.count("--tolerance") > 0) {
    throw error(errc::invalid_argument,
                "--tolerance means nothing without --verify; give that, too, or leave it out");
  }
  refuse_same_paths({{"--json", o.json}, {"--trace", o.trace}});
  run_place place = o.place;
  place.ranks_given = verb.count("--ranks") > 0;
  request.work.what = chosen.subject(own, place);
  request.work.patterns = patterns_named(o.pattern_name, request.work.what);
  request.work.repeats = o.repeats;
  request.work.seed = o.seed;
  request.work.verify = o.verify;
  if (place.ranks_given) request.ranks = place.ranks;
  if (verb.count("--tolerance") > 0) request.tolerance = o.tolerance;
  if (verb.count("--wait-limit") > 0) request.wait_limit = std::chrono::milliseconds(o.wait_limit);
  request.processes = o.processes;
  request.explain = o.explain;
  request.json = o.json;
  require_traceable(o.trace, request.work.what.memory);
  request.trace = o.trace;
  return request;
}

/// The request of spmv, including options that it shares with the other operators.
spmv_request spmv_asked(const run_options& o) {
  spmv_request request = o.spmv;
  request.backend = o.place.backend;
  request.repeats = o.repeats;
  request.seed = o.seed;
  request.verify = o.verify;
  request.json = o.json;
  return request;
}

void add_options(CLI::App& verb, run_options& o) {
  verb.add_option("--ranks", o.place.ranks, "how many ranks share the work")
      ->check(between(1, 64))
      ->capture_default_str();
  verb.add_flag("--processes", o.processes, "ranks are processes, not threads");
  verb.add_option("--backend", o.place.backend,
                  "host, or cuda: ranks are GPUs. auto: GPUs if the operator and --dtype can")
      ->check(words({"auto", "host", "cuda"}))
      ->capture_default_str();
  verb.add_option("--pattern", o.pattern_name, "a way to overlap, or all of them, interleaved")
      ->check(words(known_patterns()))
      ->capture_default_str();
  verb.add_option("--repeat", o.repeats, "timed runs of every pattern")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--seed", o.seed, "of the random inputs")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_flag("--verify", o.verify, "compare with fp64");
  verb.add_option("--tolerance", o.tolerance, "largest relative error that is right")
      ->check(not_negative());
  verb.add_flag("--explain", o.explain, "print the chosen plan and the reason");
  verb.add_option("--json", o.json, "write the figures as JSON; - for stdout instead of the table")
      ->check(writable_file());
  add_trace_option(verb, o.trace);
  verb.add_option("--wait-limit", o.wait_limit,
                  "milliseconds after which a wait is an error; 0: none")
      ->check(at_least(0));
}

constexpr const char* own_footer =
    "Options that all operators have, such as --ranks and --pattern: untax run --help";

}  // namespace

void add_run(CLI::App& app, int& status, const std::vector<std::string>& arguments) {
  CLI::App* verb =
      app.add_subcommand("run", "Run an operator: its time, its rate, and whether it is right");
  const auto options = std::make_shared<run_options>();
  add_options(*verb, *options);
  verb->footer(run_footer());
  expect_subcommand(*verb, "the operator");
  for (const auto& entry : run_operators()) {
    CLI::App* own = verb->add_subcommand(entry->name(), entry->summary());
    own->fallthrough();
    own->group("Operators");
    own->footer(own_footer);
    entry->add_options(*own);
    own->callback([verb, own, entry, options, &status, arguments] {
      run_request request = request_of(*verb, *own, *entry, *options);
      request.arguments = arguments;
      status = carry_out(request);
    });
  }
  CLI::App* spmv = verb->add_subcommand(
      "spmv", "y = A x of a sparse matrix, on threads of one process or on one GPU");
  spmv->fallthrough();
  spmv->group("Operators");
  spmv->footer(own_footer);
  add_spmv_options(*spmv, options->spmv);
  spmv->callback(
      [verb, spmv, options, &status] { status = run_spmv(*verb, *spmv, spmv_asked(*options)); });
}

}  // namespace untax::cli
