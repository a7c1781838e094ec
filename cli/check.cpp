#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"
#include "check_gpu.hpp"
#include "check_report.hpp"
#include "files.hpp"
#include "json_output.hpp"
#include "names.hpp"
#include "ops/all_reduce_norm/device_schedule.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/common/registry.hpp"
#include "ops/merge_partial_attention/device_schedule.hpp"
#include "ops/operators.hpp"
#include "option_use.hpp"
#include "output.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

struct check_options {
  std::optional<std::string> operator_name;  ///< without one, all
  check_effort effort;
  std::string json;
  gemm_problem problem{.type = dtype::bf16};
  std::optional<std::string> gpu;
  std::optional<std::string> how;
  std::optional<std::string> gather;
  std::optional<std::string> move;
  std::optional<std::string> partials;
  bool own_heads = false;
};

constexpr const char* footer =
    "Executions are explored on a memory that reorders and shows stale values as the C++ memory "
    "model allows. A mutant is a protocol with one verb left out or without its ordering; the "
    "check is worth something only if it catches every one. Schedules are proved for 1 to 8 ranks."
    "\n\n"
    "  untax check all_gather_gemm --executions 5000"
    "\n\n"
    "With --gpu it looks at what kernels are planned to do on such GPUs, for one problem, on this "
    "machine and without a GPU: each sender's transfers against the lists that its program is "
    "lowered to, all that is read and waited for, and the schedule of all ranks."
    "\n\n"
    "  untax check all_gather_gemm -m 512 -n 1024 -k 2048 --ranks 4 --gpu h200\n"
    "  untax check all_reduce_norm -m 64 -n 8192 -k 8 --ranks 8 --gpu h200\n"
    "  untax check merge_partial_attention -m 16 -n 32 -k 128 --ranks 4 --gpu h200 --own-heads";

/// The variants of one operator, or of all.
std::vector<protocol_variant> variants_named(const std::optional<std::string>& name) {
  std::vector<std::string> known;
  std::vector<std::vector<protocol_variant>> variants;
  for (const operator_spec& operation : operator_specs()) {
    std::vector<protocol_variant> own = variants_of(operation);
    if (own.empty()) continue;
    known.emplace_back(operation.name);
    variants.push_back(std::move(own));
  }
  if (name) return variants[place_in("the operator", *name, known)];
  std::vector<protocol_variant> list;
  for (const auto& own : variants) list.insert(list.end(), own.begin(), own.end());
  return list;
}

std::string table_of(const check_report& report, int columns, text_style how) {
  using side = table::align;
  table rows({{"protocol"},
              {"schedules", side::right},
              {"executions", side::right},
              {"killed", side::right},
              {"verdict"}});
  std::uint64_t schedules = 0;
  std::uint64_t executions = 0;
  std::uint64_t killed = 0;
  std::size_t mutants = 0;
  std::size_t equivalent = 0;
  for (const variant_findings& v : report.variants) {
    rows.add({v.what.name, fmt::to_string(v.schedules), fmt::to_string(v.executions),
              fmt::format("{} of {}", v.killed(), v.hunted()), v.right() ? "right" : "WRONG"});
    schedules += v.schedules;
    executions += v.executions;
    killed += v.killed();
    mutants += v.hunted();
    equivalent += v.mutants.size() - v.hunted();
  }
  std::string text = rows.render(columns, how.utf8);
  text += fmt::format("\n{} schedules proved, {} executions explored, {} of {} mutants killed",
                      schedules, executions, killed, mutants);
  text += equivalent > 0 ? fmt::format(", {} proved equivalent\n", equivalent) : "\n";
  for (const variant_findings& v : report.variants) {
    for (const std::string& trouble : v.troubles()) text += "\n" + trouble + "\n";
    for (const std::string& mutant : v.equivalents()) text += "\n" + mutant + "\n";
  }
  return text;
}

/// Operators that are checked only as protocols.
std::vector<std::string> operators_without_plans() {
  std::vector<std::string> names = {std::string(spec<flash_decode>.name)};
  for (const auto& entry : collectives()) names.push_back(entry.name);
  return names;
}

/// An operator whose plans for GPUs can be checked.
operator_entry entry_on_gpus(const check_options& options) {
  std::vector<std::string> known;
  for (const auto& entry : operators()) known.push_back(entry.name);
  known.emplace_back(spec<all_reduce_norm>.name);
  known.emplace_back(spec<merge_partial_attention>.name);
  const std::string& name = *options.operator_name;
  const auto other = operators_without_plans();
  if (std::ranges::find(other, name) != other.end()) {
    throw error(errc::invalid_argument,
                fmt::format("--gpu has no plans of {} to check; it has to be {}", name,
                            alternatives(known)));
  }
  const std::size_t place = place_in("the operator", name, known);
  if (options.own_heads && known[place] != spec<merge_partial_attention>.name) {
    throw error(errc::invalid_argument, fmt::format("--own-heads means nothing to {}; it is for {}",
                                                    name, spec<merge_partial_attention>.name));
  }
  if (place < operators().size()) return operators()[place];
  operator_entry entry;
  entry.name = known[place];
  if (entry.name == spec<all_reduce_norm>.name) {
    entry.check_on_gpus = [](const gemm_problem& p, int ranks, const operator_options& o,
                             int places) {
      all_reduce_norm_problem rows;
      rows.tokens = p.m;
      rows.hidden = p.n;
      rows.type = p.type;
      return check_on_gpus(rows, ranks, o, places);
    };
    return entry;
  }
  const auto get = options.own_heads ? merged_heads::own : merged_heads::all;
  entry.check_on_gpus = [get](const gemm_problem& p, int ranks, const operator_options& o,
                              int places) {
    const merge_partial_attention_problem parts{
        .tokens = p.m, .heads = p.n, .head_dim = p.k, .type = p.type, .get = get};
    return check_on_gpus(parts, ranks, {.how = o.how}, places);
  };
  return entry;
}

int carry_out_on_gpus(const check_options& options) {
  if (!options.operator_name)
    throw error(errc::invalid_argument, "--gpu looks at one operator; give its name");
  if (options.effort.ranks.size() != 1)
    throw error(errc::invalid_argument, "--gpu takes one number of ranks: --ranks W");
  std::optional<progress_bar> bar;
  const auto progress = [&](const std::string& way, std::size_t done, std::size_t total) {
    if (!bar) bar.emplace(way, static_cast<std::int64_t>(total));
    if (done > 0) bar->advance();
    bar->relabel(way);
  };
  const gpu_check_report report =
      check_gpu_plans({entry_on_gpus(options), options.problem, options.effort.ranks.front(),
                       *options.gpu, options.how, options.gather, options.move, options.partials},
                      progress);
  bar.reset();
  if (options.json != "-") show(table_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report));
  return report.right() ? 0 : 1;
}

int carry_out(const CLI::App& verb, const check_options& options) {
  if (options.gpu) {
    refuse_foreign_options(
        verb, {{{"--executions", "--quick"}, {"the exploration of protocols, without --gpu"}}}, "",
        "--gpu");
    return carry_out_on_gpus(options);
  }
  for (const int ranks : options.effort.ranks) {
    if (ranks > most_ranks_of_scenarios)
      throw error(errc::invalid_argument,
                  fmt::format("--ranks: {} is not between 1 and {}; more are for --gpu", ranks,
                              most_ranks_of_scenarios));
  }
  check_request request{variants_named(options.operator_name), options.effort, {}};
  check_report report;
  {
    progress_bar bar("check", steps_of(request));
    request.progress = [&bar](const std::string& label) {
      bar.relabel(label);
      bar.advance();
    };
    report = check_protocols(request);
  }
  if (options.json != "-") show(table_of(report, width(stream::out), style(stream::out)));
  if (!options.json.empty()) write_json(options.json, to_json(report));
  return report.right() ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("check", "Prove and explore the protocols of the operators");
  const auto options = std::make_shared<check_options>();
  verb->add_option("OPERATOR", options->operator_name, "only this one");
  verb->add_option("--executions", options->effort.executions,
                   "to explore at random of each scenario and mutant")
      ->check(at_least(1))
      ->capture_default_str();
  verb->add_option("--ranks", options->effort.ranks, "numbers of ranks to explore, such as 2,3")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(between(1, 16))
      ->capture_default_str();
  verb->add_flag("--quick", options->effort.quick, "prove few schedules, explore at random only");
  verb->add_option("--json", options->json, "write the findings as JSON; - for stdout")
      ->check(writable_file());
  auto* const gpu =
      verb->add_option("--gpu", options->gpu,
                       "plan for such GPUs, and check the plans: " + alternatives(gpu_names()))
          ->check(words(gpu_names()));
  const auto of_gpu = [&](CLI::Option* option) { return option->needs(gpu); };
  gpu->needs(of_gpu(verb->add_option("-m", options->problem.m, "rows of the whole A, or tokens")));
  gpu->needs(of_gpu(verb->add_option("-n", options->problem.n, "columns of the result, or heads")));
  gpu->needs(of_gpu(verb->add_option("-k", options->problem.k,
                                     "columns of the whole A, or elements of a head; of "
                                     "all_reduce_norm it means nothing")));
  of_gpu(verb->add_option("--pattern", options->how, "with --gpu, only this one"));
  of_gpu(verb->add_option("--gather", options->gather, "with --gpu, only rows or k of A"));
  of_gpu(verb->add_option("--move", options->move, "with --gpu, only push or pull"));
  of_gpu(verb->add_option("--partials", options->partials,
                          "with --gpu, only fp32 or bf16 partial results, of sums over ranks"));
  of_gpu(verb->add_flag("--own-heads", options->own_heads,
                        "of merge_partial_attention, with --gpu: to each rank its heads"));
  verb->footer(footer);
  verb->callback([verb, options, &status] { status = carry_out(*verb, *options); });
}

}  // namespace untax::cli
