#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"
#include "engines/gpu/attention/shape.hpp"
#include "names.hpp"
#include "ops/all_reduce_norm/workload.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/common/registry.hpp"
#include "ops/merge_partial_attention/planning.hpp"
#include "option_use.hpp"
#include "output_paths.hpp"
#include "run_attention.hpp"
#include "run_help.hpp"
#include "run_request.hpp"
#include "spmv.hpp"
#include "trace.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

/// The options, as written on the command line.
struct run_options {
  std::string operator_name;
  gemm_problem problem{.m = 512, .n = 1024, .k = 768};
  operator_options options;
  std::string pattern_name = "automatic";
  std::string gather = "rows";
  std::string type = "fp32";
  std::optional<std::string> partials;
  std::string direction = "push";
  std::string launch = "graph";
  std::string backend = "auto";
  int ranks = 2;
  int repeats = 20;
  std::uint64_t seed = 1;
  collective_problem collective{.count = 1 << 20};
  collective_options chunks;
  attention_request attention;
  spmv_request spmv;
  std::string reduction_name = "sum";
  std::string norm_output = "same";
  double tolerance = 0;
  int wait_limit = 0;
  bool verify = false;
  bool explain = false;
  bool processes = false;
  std::string json;
  std::string trace;
};

constexpr dtype types[] = {dtype::f32, dtype::f16, dtype::bf16};
constexpr gather_axis axes[] = {gather_axis::rows, gather_axis::k};
constexpr reduction reductions[] = {reduction::sum, reduction::max, reduction::min};
constexpr norm_output norm_outputs[] = {norm_output::same, norm_output::e4m3,
                                        norm_output::e4m3_per_token};
constexpr direction directions[] = {direction::push, direction::pull};
launch_mode launch_named(const std::string& text) {
  return place_in("--launch", text, {"graph", "eager"}) == 0 ? launch_mode::graph
                                                             : launch_mode::eager;
}

std::vector<pattern> patterns_named(const std::string& text, const trial_subject& what) {
  std::vector<std::string> known;
  for (const pattern p : all_patterns) known.emplace_back(name_of(p));
  known.emplace_back("all");
  const std::size_t place = place_in("--pattern", text, known);
  if (place == all_patterns.size()) return bench::all_patterns_of(what);
  if (what.memory == memory_kind::host && !on_host(all_patterns[place])) {
    throw error(
        errc::invalid_argument,
        fmt::format("{} is a pattern of GPUs, and this runs on the host; --backend cuda and "
                    "--dtype bf16 take GPUs",
                    text));
  }
  return {all_patterns[place]};
}

/// The backend of the operator. By default it is GPUs if the operator has a kernel for the problem,
/// elements have 16 bits, and there is a GPU for each rank. If cuda is given, the operator itself
/// refuses what it cannot do there.
memory_kind backend_of(const CLI::App& verb, const run_options& o, bool has_kernel, dtype type) {
  const std::size_t place = place_in("--backend", o.backend, {"auto", "host", "cuda"});
  if (place == 1) return memory_kind::host;
  if (place == 2) return memory_kind::cuda;
  if (!has_kernel || type == dtype::f32) return memory_kind::host;
  const int gpus = gpus_here();
  const bool enough = gpus >= (verb.count("--ranks") > 0 ? o.ranks : 2);
  return enough ? memory_kind::cuda : memory_kind::host;
}

trial_subject gemm_subject(const CLI::App& verb, const run_options& o,
                           const operator_entry& entry) {
  const option_check check(verb, entry.name);
  if (!entry.gathers) {
    check.refuse({"--gather", "--panel-k"}, "gathers nothing");
    check.refuse({"--direction"}, "can only push");
  }
  if (!entry.sums_to) check.refuse({"--partials"}, "sends no partial results");
  if (!entry.phases) check.refuse({"--phases"}, "has no phases to choose");
  check.refuse({"--reduction", "--root", "--unequal", "--direct", "--chunk-bytes", "--depth"},
               "multiplies");
  check.refuse(attention_options, "has no attention");
  gemm_problem problem = o.problem;
  problem.type = named("--dtype", o.type, types);
  if (o.partials) problem.partials = named("--partials", *o.partials, types);
  problem.gather = named("--gather", o.gather, axes);
  if (problem.gather != gather_axis::k)
    check.refuse({"--panel-k"}, "gathers rows; --panel-k is for --gather k");
  const dtype sent = partials_type(problem);
  if (sent != dtype::f32 && sent != problem.type) {
    throw error(errc::invalid_argument,
                fmt::format("--partials is {} and --dtype {}; partial results have to be fp32 or "
                            "of the same type as the operands",
                            *o.partials, o.type));
  }
  operator_options options = o.options;
  options.phases = o.chunks.phases;
  options.move = named("--direction", o.direction, directions);
  options.launch = launch_named(o.launch);
  const memory_kind where = backend_of(verb, o, entry.on_gpus, problem.type);
  if (where == memory_kind::cuda) {
    check.refuse({"--launch"}, "is launched on GPUs as its caller does, here eagerly");
  } else {
    check.refuse({"--constant-weights"}, "on the host reads weights only while it runs");
  }
  return subject_of(entry, problem, options, where);
}

trial_subject collective_subject(const CLI::App& verb, const run_options& o,
                                 const collective_entry& entry) {
  const option_check check(verb, entry.name);
  check.refuse({"-m", "-k", "--gather", "--partials", "--tile-m", "--tile-n", "--panel-k",
                "--constant-weights", "--invariant"},
               "multiplies nothing");
  check.refuse(attention_options, "has no attention");
  check.refuse({"--direction"}, "can only push");
  check.refuse({"--senders"}, "has as many senders as workers");
  if (!entry.combines) check.refuse({"--reduction"}, "combines nothing");
  if (!entry.has_root) check.refuse({"--root"}, "has no root");
  if (!entry.has_phases) check.refuse({"--phases"}, "has one phase");
  if (!entry.has_uneven) check.refuse({"--unequal"}, "has no parts of other sizes");
  collective_problem problem = o.collective;
  if (verb.count("-n") > 0) problem.count = o.problem.n;
  problem.type = named("--dtype", o.type, types);
  problem.how = named("--reduction", o.reduction_name, reductions);
  collective_options options = o.chunks;
  options.workers = o.options.workers;
  options.launch = launch_named(o.launch);
  const memory_kind where = backend_of(verb, o, true, problem.type);
  if (where == memory_kind::cuda)
    check.refuse({"--launch"}, "is launched on GPUs as its caller does, here eagerly");
  return subject_of(entry, problem, options, where);
}

trial_subject attention_subject(const CLI::App& verb, const run_options& o) {
  const option_check check(verb, attention_entry().name);
  check.refuse({"-m", "-n", "-k", "--gather", "--tile-m", "--tile-n", "--panel-k",
                "--constant-weights", "--invariant"},
               "has --batch, --heads, --kv-heads, --head-dim and --keys");
  check.refuse({"--direction"}, "can only push");
  check.refuse({"--reduction", "--root", "--phases", "--direct", "--chunk-bytes", "--depth"},
               "is no collective");
  check.refuse({"--own-heads"}, "gives all heads to all ranks");
  const flash_decode_problem& asked = o.attention.work.problem;
  const bool has_kernel = gpu::has_kernel_for(asked.head_dim) && verb.count("--splits") == 0 &&
                          asked.heads <= asked.kv_heads * gpu::most_heads_of_group;
  const memory_kind where = backend_of(verb, o, has_kernel, named("--dtype", o.type, types));
  if (where == memory_kind::cuda) {
    check.refuse({"--launch"}, "is launched on GPUs as its caller does, here eagerly");
    check.refuse({"--splits"}, "splits sequences on GPUs as it finds them");
  }
  attention_request request = o.attention;
  request.work.uneven = o.collective.uneven;
  request.work.problem.type = named("--dtype", o.type, types);
  if (o.partials) request.work.problem.partials = named("--partials", *o.partials, types);
  request.options.workers = o.options.workers;
  request.options.senders = o.options.senders;
  request.options.launch = launch_named(o.launch);
  return subject_of(request, where);
}

trial_subject merge_subject(const CLI::App& verb, const run_options& o) {
  const option_check check(verb, merge_entry().name);
  check.refuse({"-m",          "-n",         "-k",          "--gather",
                "--tile-m",    "--tile-n",   "--panel-k",   "--constant-weights",
                "--invariant", "--partials", "--direction", "--reduction",
                "--root",      "--phases",   "--direct",    "--chunk-bytes",
                "--depth",     "--unequal",  "--kv-heads",  "--keys",
                "--page-size", "--scale",    "--logit-cap", "--splits"},
               "merges --batch tokens of --heads with --head-dim elements");
  attention_request request = o.attention;
  request.work.problem.type = named("--dtype", o.type, types);
  const merge_partial_attention_problem asked = merge_problem_of(request);
  const bool has_kernel = asked.head_dim % chunk_elements(asked.type) == 0;
  const memory_kind where = backend_of(verb, o, has_kernel, asked.type);
  if (where == memory_kind::cuda) {
    check.refuse({"--launch"}, "is launched on GPUs as its caller does, here eagerly");
    check.refuse({"--senders"}, "has blocks that send and merge on GPUs");
  }
  request.options.workers = o.options.workers;
  request.options.senders = o.options.senders;
  request.options.launch = launch_named(o.launch);
  return merge_subject_of(request, where);
}

trial_subject norm_subject(const CLI::App& verb, const run_options& o) {
  const option_check check(verb, norm_entry().name);
  check.refuse({"-k", "--gather", "--partials", "--tile-n", "--panel-k", "--constant-weights",
                "--invariant"},
               "multiplies nothing; -m are tokens, -n elements of one");
  check.refuse({"--direction"}, "can only push");
  check.refuse({"--reduction", "--root", "--unequal", "--direct", "--chunk-bytes", "--depth"},
               "adds whole rows");
  check.refuse(attention_options, "has no attention");
  all_reduce_norm_problem problem{.tokens = o.problem.m, .hidden = o.problem.n};
  problem.type = named("--dtype", o.type, types);
  problem.output = named("--norm-output", o.norm_output, norm_outputs);
  operator_options options = o.options;
  options.phases = o.chunks.phases;
  options.launch = launch_named(o.launch);
  const memory_kind where = backend_of(verb, o, true, problem.type);
  return subject_of(problem, options, where);
}

trial_subject subject_named(const CLI::App& verb, const run_options& o) {
  std::vector<std::string> known;
  for (const operator_entry& entry : operators()) known.push_back(entry.name);
  for (const collective_entry& entry : collectives()) known.push_back(entry.name);
  known.push_back(attention_entry().name);
  const std::size_t attention = known.size() - 1;
  known.push_back(norm_entry().name);
  known.push_back(merge_entry().name);
  known.emplace_back("spmv");
  const std::size_t place = place_in("the operator", o.operator_name, known);
  option_check(verb, o.operator_name).refuse(spmv_run_options, "has no sparse matrix");
  if (place == attention + 1) return norm_subject(verb, o);
  option_check(verb, o.operator_name).refuse({"--norm-output"}, "normalises nothing");
  if (place == attention) return attention_subject(verb, o);
  if (place == attention + 2) return merge_subject(verb, o);
  if (place < operators().size()) return gemm_subject(verb, o, operators()[place]);
  return collective_subject(verb, o, collectives()[place - operators().size()]);
}

run_request request_of(const CLI::App& verb, const run_options& o) {
  run_request request;
  if (!o.verify && verb.count("--tolerance") > 0) {
    throw error(errc::invalid_argument,
                "--tolerance means nothing without --verify; give that, too, or leave it out");
  }
  refuse_same_paths({{"--json", o.json}, {"--trace", o.trace}});
  request.work.what = subject_named(verb, o);
  request.work.patterns = patterns_named(o.pattern_name, request.work.what);
  request.work.repeats = o.repeats;
  request.work.seed = o.seed;
  request.work.verify = o.verify;
  if (verb.count("--ranks") > 0) request.ranks = o.ranks;
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
spmv_request spmv_asked(const CLI::App& verb, const run_options& o) {
  spmv_request request = o.spmv;
  if (verb.count("--dtype") > 0) request.type = o.type;
  request.backend = o.backend;
  request.repeats = o.repeats;
  request.seed = o.seed;
  request.verify = o.verify;
  request.json = o.json;
  return request;
}

void add_options(CLI::App& verb, run_options& o) {
  verb.add_option("OPERATOR", o.operator_name, "an operator or a collective; see below")
      ->required();
  verb.add_option("--ranks", o.ranks, "how many ranks share the work")
      ->check(between(1, 64))
      ->capture_default_str();
  verb.add_flag("--processes", o.processes, "ranks are processes, not threads");
  verb.add_option("--backend", o.backend,
                  "host, or cuda: ranks are GPUs. auto: GPUs if the operator and --dtype can")
      ->capture_default_str();
  verb.add_option("--pattern", o.pattern_name, "a way to overlap, or all of them, interleaved")
      ->capture_default_str();
  verb.add_option("-m", o.problem.m, "rows of the whole A")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("-n", o.problem.n,
                  "columns of the result (of one rank where A is gathered), or elements")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("-k", o.problem.k, "the reduction dimension, all ranks together")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--gather", o.gather, "what of A is sharded: rows or k")->capture_default_str();
  verb.add_option("--dtype", o.type, "fp32, fp16 or bf16; with --backend cuda bf16 unless told")
      ->capture_default_str();
  verb.add_option("--partials", o.partials,
                  "partial results on their way: as --dtype, or fp32; of "
                  "flash_decode fp32, or bf16 if told");
  verb.add_option("--direction", o.direction, "who moves a shard: its owner (push) or pull")
      ->capture_default_str();
  verb.add_option("--launch", o.launch, "graph: threads that wait; eager: new ones every time")
      ->capture_default_str();
  verb.add_option("--workers", o.options.workers, "computing workers of a rank; 0: untax chooses")
      ->check(between(0, 31));
  verb.add_option("--senders", o.options.senders, "moving workers of a rank; 0: untax chooses")
      ->check(between(0, 31));
  verb.add_option("--tile-m", o.options.tile_m, "rows of a tile; 0: untax chooses")
      ->check(at_least(0));
  verb.add_option("--tile-n", o.options.tile_n, "columns of a tile; 0: untax chooses")
      ->check(at_least(0));
  verb.add_option("--panel-k", o.options.panel_k,
                  "columns of a piece where k is gathered; 0: ditto")
      ->check(at_least(0));
  verb.add_flag("--constant-weights", o.options.constant_weights,
                "GPUs read weights while what is ahead of a run still ends");
  verb.add_flag("--invariant", o.options.invariant,
                "a row has the same bits for every -m, --pattern and place in the batch");
  verb.add_option("--reduction", o.reduction_name, "sum, max or min")->capture_default_str();
  verb.add_option("--root", o.collective.root, "the rank that broadcasts")->check(at_least(0));
  verb.add_option("--phases", o.chunks.phases,
                  "of operators that all-reduce, and broadcast: 1, 2; 0: untax chooses")
      ->check(between(0, 2));
  verb.add_option("--norm-output", o.norm_output,
                  "of all_reduce_norm: same, e4m3, or e4m3_per_token")
      ->capture_default_str();
  verb.add_flag("--unequal", o.collective.uneven,
                "parts of all_to_all, or shards of sequences, differ in size");
  verb.add_flag("--direct", o.chunks.direct,
                "peers read and write the callers' memory, which is symmetric");
  verb.add_option("--chunk-bytes", o.chunks.chunk_bytes, "that move as a whole; 0: untax chooses")
      ->check(at_least(0));
  verb.add_option("--depth", o.chunks.depth, "chunks under way between two workers; 0: ditto")
      ->check(at_least(0));
  add_attention_options(verb, o.attention);
  add_spmv_options(verb, o.spmv);
  verb.add_option("--repeat", o.repeats, "timed runs of every pattern")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--seed", o.seed, "of the random inputs")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_flag("--verify", o.verify, "compare with fp64");
  verb.add_option("--tolerance", o.tolerance, "largest relative error that is right")
      ->check(not_negative());
  verb.add_flag("--explain", o.explain, "say what was chosen, and why");
  verb.add_option("--json", o.json, "write the figures as JSON; - for stdout instead of the table")
      ->check(writable_file());
  add_trace_option(verb, o.trace);
  verb.add_option("--wait-limit", o.wait_limit,
                  "milliseconds after which a wait is an error; 0: none")
      ->check(at_least(0));
}

}  // namespace

void add_run(CLI::App& app, int& status, const std::vector<std::string>& arguments) {
  CLI::App* verb = app.add_subcommand("run", "Run an operator: how long, how fast, is it right?");
  const auto options = std::make_shared<run_options>();
  add_options(*verb, *options);
  verb->footer(run_footer());
  verb->callback([verb, options, &status, arguments] {
    if (options->operator_name == "spmv") {
      status = run_spmv(*verb, spmv_asked(*verb, *options));
      return;
    }
    // Tensor cores of GPUs take elements of 16 bits.
    if (options->backend == "cuda" && verb->count("--dtype") == 0) options->type = "bf16";
    run_request request = request_of(*verb, *options);
    request.arguments = arguments;
    status = carry_out(request);
  });
}

}  // namespace untax::cli
