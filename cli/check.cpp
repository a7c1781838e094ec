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
#include "ops/checks.hpp"
#include "ops/common/device_schedule.hpp"
#include "ops/common/registry.hpp"
#include "ops/operators.hpp"
#include "option_use.hpp"
#include "output.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

struct check_options {
  std::optional<std::string> operator_name;  ///< absent: all operators
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

constexpr const char* footer_text =
    "Executions are explored on a memory that reorders and shows stale values as the C++ memory "
    "model allows. A mutant is a protocol with one verb left out or without its ordering; a sound "
    "check catches all of them. Schedules are proved for 1 to 8 ranks."
    "\n\n"
    "  untax check all_gather_gemm --executions 5000"
    "\n\n"
    "With --gpu it checks the plans of kernels for such GPUs, for one problem, on this machine and "
    "without a GPU: each sender's transfers against its program, all reads and waits, and the "
    "schedule of all ranks."
    "\n\n"
    "  untax check all_gather_gemm -m 512 -n 1024 -k 2048 --ranks 4 --gpu h200";

/// Calls visit.operator()<Operator>() for each operator that is not a GEMM and whose plans for GPUs
/// can be checked. Its first sizes correspond to m, n and k of GEMMs.
template <class Visit>
void for_each_checked(const Visit& visit) {
  library_operators::for_each([&]<class Operator>() {
    if constexpr (requires { spec_of<Operator>::checked_on_gpus; })
      visit.template operator()<Operator>();
  });
}

/// The fields of a problem that -m, -n and -k set.
std::vector<const field*> sizes_of(const operator_spec& operation) {
  std::vector<const field*> sizes;
  for (const field& f : operation.problem_fields) {
    if (f.kind != field_kind::integer || sizes.size() == 3) break;
    sizes.push_back(&f);
  }
  return sizes;
}

const field* own_heads_of(const operator_spec& operation) {
  const auto place = std::ranges::find(operation.problem_fields, "own_heads", &field::name);
  return place == operation.problem_fields.end() ? nullptr : &*place;
}

/// The names of the operators for which `condition(spec)` holds.
template <class Condition>
std::vector<std::string> names_checked(const Condition& condition) {
  std::vector<std::string> names;
  for_each_checked([&]<class Operator>() {
    if (condition(spec<Operator>)) names.emplace_back(spec<Operator>.name);
  });
  return names;
}

std::string footer() {
  std::string text = footer_text;
  for_each_checked([&]<class Operator>() {
    text += fmt::format("\n  untax check {} {}", spec<Operator>.name,
                        spec_of<Operator>::checked_on_gpus);
  });
  return text;
}

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

/// Whether an operator of this name is checked only as a protocol.
bool has_no_plans(std::string_view name, const std::vector<std::string>& checked) {
  const auto specs = operator_specs();
  const auto place = std::ranges::find(specs, name, &operator_spec::name);
  return place != specs.end() && !variants_of(*place).empty() &&
         std::ranges::find(checked, name) == checked.end();
}

/// The problem and the options of an operator, from the options of the command.
template <class Operator>
device_findings check_as(const gemm_problem& p, int ranks, const operator_options& o,
                         int multiprocessors, bool own_heads) {
  typename spec_of<Operator>::problem problem;
  const std::int64_t given[] = {p.m, p.n, p.k};
  const auto sizes = sizes_of(spec<Operator>);
  for (std::size_t i = 0; i < sizes.size(); ++i) store(*sizes[i], &problem, {.integer = given[i]});
  problem.type = p.type;
  if (own_heads) store(*own_heads_of(spec<Operator>), &problem, {.integer = 1});
  typename spec_of<Operator>::options options;
  options.how = o.how;
  return spec_of<Operator>::check_on_gpus(problem, ranks, options, multiprocessors);
}

/// An operator whose plans for GPUs can be checked, and their check.
std::pair<operator_entry, gpu_plan_check> entry_on_gpus(const check_options& options) {
  std::vector<std::string> known;
  for (const auto& entry : operators()) known.push_back(entry.name);
  for (auto& name : names_checked([](const auto&) { return true; }))
    known.push_back(std::move(name));
  const std::string& name = *options.operator_name;
  if (has_no_plans(name, known)) {
    throw error(errc::invalid_argument,
                fmt::format("--gpu has no plans of {} to check; it has to be {}", name,
                            alternatives(known)));
  }
  const std::size_t place = place_in("the operator", name, known);
  const auto with_heads = names_checked(own_heads_of);
  if (options.own_heads && std::ranges::find(with_heads, known[place]) == with_heads.end()) {
    throw error(errc::invalid_argument, fmt::format("--own-heads means nothing to {}; it is for {}",
                                                    name, alternatives(with_heads)));
  }
  if (place < operators().size()) {
    const operator_entry& entry = operators()[place];
    if (!has_gemm_plans(entry)) return {entry, nullptr};
    return {entry, [&entry](const gemm_problem& p, int ranks, const operator_options& o,
                            int multiprocessors) {
              return check_gemm_plans(entry, p, ranks, o, multiprocessors);
            }};
  }
  operator_entry entry;
  gpu_plan_check check;
  entry.name = known[place];
  for_each_checked([&]<class Operator>() {
    if (spec<Operator>.name != entry.name) return;
    check = [own_heads = options.own_heads](const gemm_problem& p, int ranks,
                                            const operator_options& o, int multiprocessors) {
      return check_as<Operator>(p, ranks, o, multiprocessors, own_heads);
    };
  });
  return {entry, check};
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
  const auto [entry, check] = entry_on_gpus(options);
  const gpu_check_report report =
      check_gpu_plans({entry, check, options.problem, options.effort.ranks.front(), *options.gpu,
                       options.how, options.gather, options.move, options.partials},
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
  gpu->needs(
      of_gpu(verb->add_option("-k", options->problem.k,
                              "columns of the whole A, or elements of a head; of " +
                                  alternatives(names_checked([](const operator_spec& operation) {
                                    return sizes_of(operation).size() < 3;
                                  })) +
                                  " it means nothing")));
  of_gpu(verb->add_option("--pattern", options->how, "with --gpu, only this one"));
  of_gpu(verb->add_option("--gather", options->gather, "with --gpu, only rows or k of A"));
  of_gpu(verb->add_option("--move", options->move, "with --gpu, only push or pull"));
  of_gpu(verb->add_option("--partials", options->partials,
                          "with --gpu, only fp32 or bf16 partial results, of sums over ranks"));
  of_gpu(verb->add_flag(
      "--own-heads", options->own_heads,
      "of " + alternatives(names_checked(own_heads_of)) + ", with --gpu: to each rank its heads"));
  verb->footer(footer());
  verb->callback([verb, options, &status] { status = carry_out(*verb, *options); });
}

}  // namespace untax::cli
