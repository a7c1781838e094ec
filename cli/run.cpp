#include <memory>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"
#include "files.hpp"
#include "names.hpp"
#include "run_request.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

/// The options as they are written.
struct run_options {
  std::string operator_name;
  gemm_problem problem{.m = 512, .n = 1024, .k = 768};
  operator_options options;
  std::string pattern_name = "automatic";
  std::string gather = "rows";
  std::string type = "fp32";
  std::string partials = "fp32";
  std::string direction = "push";
  std::string launch = "graph";
  int ranks = 2;
  int repeats = 20;
  std::uint64_t seed = 1;
  double tolerance = 0;
  int wait_limit = 0;
  bool verify = false;
  bool explain = false;
  bool processes = false;
  std::string json;
};

constexpr dtype types[] = {dtype::f32, dtype::f16, dtype::bf16};
constexpr gather_axis axes[] = {gather_axis::rows, gather_axis::k};
constexpr direction directions[] = {direction::push, direction::pull};
constexpr const char* footer =
    "Times are from the first rank that starts to the last one that ends. With --verify inputs "
    "are\n"
    "fresh, the result is NaN before, and fp64 tells what is right; a wrong result is exit status "
    "1.\n"
    "Started by torchrun, mpirun or srun, the command joins their world.\n\n"
    "  untax run all_gather_gemm --ranks 4 --pattern all -m 512 -n 1024 -k 768 --verify\n"
    "  untax run gemm_reduce_scatter --ranks 2 --processes --dtype bf16 --explain";

launch_mode launch_named(const std::string& text) {
  return place_in("--launch", text, {"graph", "eager"}) == 0 ? launch_mode::graph
                                                             : launch_mode::eager;
}

const operator_entry& entry_named(const std::string& text) {
  std::vector<std::string> known;
  for (const operator_entry& entry : operators()) known.push_back(entry.name);
  return operators()[place_in("the operator", text, known)];
}

std::vector<pattern> patterns_named(const std::string& text) {
  std::vector<std::string> known;
  for (const pattern p : all_patterns) known.emplace_back(name_of(p));
  known.emplace_back("all");
  const std::size_t place = place_in("--pattern", text, known);
  if (place == all_patterns.size()) return {all_patterns.begin(), all_patterns.end()};
  return {all_patterns[place]};
}

/// Refuses options that the operator does not have, so that nobody believes they did something.
void refuse_foreign_options(const CLI::App& verb, const operator_entry& entry) {
  const auto refuse = [&](const char* option, const char* reason) {
    if (verb.count(option) == 0) return;
    throw error(
        errc::invalid_argument,
        fmt::format("{} means nothing to {}, which {}; leave it out", option, entry.name, reason));
  };
  if (!entry.gathers) {
    refuse("--gather", "gathers nothing");
    refuse("--direction", "can only push");
    refuse("--panel-k", "gathers nothing");
  }
  if (!entry.has_partials) refuse("--partials", "sends no partial results");
}

run_request request_of(const CLI::App& verb, const run_options& o) {
  run_request request;
  request.work.entry = &entry_named(o.operator_name);
  refuse_foreign_options(verb, *request.work.entry);
  request.work.problem = o.problem;
  request.work.problem.type = named("--dtype", o.type, types);
  request.work.problem.partials = named("--partials", o.partials, types);
  request.work.problem.gather = named("--gather", o.gather, axes);
  const dtype partials = request.work.problem.partials;
  if (partials != dtype::f32 && partials != request.work.problem.type) {
    throw error(errc::invalid_argument,
                fmt::format("--partials is {} and --dtype {}; partial results have to be fp32 or "
                            "of the same type as the operands",
                            o.partials, o.type));
  }
  request.work.options = o.options;
  request.work.options.move = named("--direction", o.direction, directions);
  request.work.options.launch = launch_named(o.launch);
  request.work.patterns = patterns_named(o.pattern_name);
  request.work.repeats = o.repeats;
  request.work.seed = o.seed;
  request.work.verify = o.verify;
  if (verb.count("--ranks") > 0) request.ranks = o.ranks;
  if (verb.count("--tolerance") > 0) request.tolerance = o.tolerance;
  if (verb.count("--wait-limit") > 0) request.wait_limit = std::chrono::milliseconds(o.wait_limit);
  request.processes = o.processes;
  request.explain = o.explain;
  request.json = o.json;
  if (!o.json.empty()) require_writable(o.json);
  return request;
}

void add_options(CLI::App& verb, run_options& o) {
  verb.add_option("OPERATOR", o.operator_name,
                  "all_gather_gemm, gemm_all_scatter or gemm_reduce_scatter")
      ->required();
  verb.add_option("--ranks", o.ranks, "how many ranks share the work")
      ->check(between(1, 64))
      ->capture_default_str();
  verb.add_flag("--processes", o.processes, "ranks are processes, not threads");
  verb.add_option("--pattern", o.pattern_name, "a way to overlap, or all of them, interleaved")
      ->capture_default_str();
  verb.add_option("-m", o.problem.m, "rows of the whole A")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("-n", o.problem.n, "columns of the result (of one rank where A is gathered)")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("-k", o.problem.k, "the reduction dimension, all ranks together")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--gather", o.gather, "what is dealt of A: rows or k")->capture_default_str();
  verb.add_option("--dtype", o.type, "fp32, fp16 or bf16")->capture_default_str();
  verb.add_option("--partials", o.partials, "partial results on their way: fp32, or as --dtype")
      ->capture_default_str();
  verb.add_option("--direction", o.direction, "who moves a shard: its owner (push) or pull")
      ->capture_default_str();
  verb.add_option("--launch", o.launch, "graph: threads that wait; eager: new ones every time")
      ->capture_default_str();
  verb.add_option("--workers", o.options.workers, "computing workers of a rank; 0: untax chooses")
      ->check(between(0, 31));
  verb.add_option("--movers", o.options.movers, "moving workers of a rank; 0: untax chooses")
      ->check(between(0, 31));
  verb.add_option("--tile-m", o.options.tile_m, "rows of a tile; 0: untax chooses")
      ->check(at_least(0));
  verb.add_option("--tile-n", o.options.tile_n, "columns of a tile; 0: untax chooses")
      ->check(at_least(0));
  verb.add_option("--panel-k", o.options.panel_k,
                  "columns of a piece where k is gathered; 0: ditto")
      ->check(at_least(0));
  verb.add_option("--repeat", o.repeats, "timed runs of every pattern")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--seed", o.seed, "of the random inputs")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_flag("--verify", o.verify, "compare with fp64");
  verb.add_option("--tolerance", o.tolerance, "largest relative error that is right")
      ->check(CLI::NonNegativeNumber);
  verb.add_flag("--explain", o.explain, "say what was chosen, and why");
  verb.add_option("--json", o.json, "write the figures as JSON; - for stdout instead of the table");
  verb.add_option("--wait-limit", o.wait_limit,
                  "milliseconds after which a wait is an error; 0: none")
      ->check(at_least(0));
}

}  // namespace

void add_run(CLI::App& app, int& status, const std::vector<std::string>& arguments) {
  CLI::App* verb = app.add_subcommand("run", "Run an operator: how long, how fast, is it right?");
  const auto options = std::make_shared<run_options>();
  add_options(*verb, *options);
  verb->footer(footer);
  verb->callback([verb, options, &status, arguments] {
    run_request request = request_of(*verb, *options);
    request.arguments = arguments;
    status = carry_out(request);
  });
}

}  // namespace untax::cli
