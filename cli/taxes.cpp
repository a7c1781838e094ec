#include "verbs.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <untax/core/build_info.hpp>
#include <untax/core/error.hpp>
#include <untax/core/version.hpp>
#include <untax/decoder/config.hpp>
#include <untax/select/table.hpp>
#include <untax/taxes/ablation.hpp>
#include <untax/taxes/load.hpp>
#include <untax/taxes/machine.hpp>
#include <untax/taxes/model_config.hpp>
#include <untax/taxes/report.hpp>

#include "arguments.hpp"
#include "files.hpp"
#include "option_use.hpp"
#include "output.hpp"
#include "png.hpp"
#include "run_request.hpp"
#include "src/core/text_file.hpp"
#include "src/taxes/backends.hpp"
#include "taxes_chain.hpp"
#include "taxes_predicted.hpp"
#include "taxes_request.hpp"
#include "terminal.hpp"
#include "trace.hpp"

namespace untax::cli {
namespace {

struct taxes_options {
  taxes_request what;
  int repeats = 20;
  int workers = 0;
  std::string json;
  std::string html;
  std::string trace;
  std::string compare;
  std::string report;
  std::string plot;
  std::string machine;
  std::string scale;
  bool chain = false;
  std::int64_t layers = 0;

  /// Whether a document goes to stdout. Nothing else is printed then.
  [[nodiscard]] bool to_stdout() const { return json == "-" || html == "-"; }
};

/// Accepts paths at which a picture can be written, of a kind that can be drawn.
CLI::Validator picture_file() {
  return CLI::Validator(
      [](const std::string& path) {
        if (path.ends_with(".svg") || path.ends_with(".png")) return why_not_writable(path);
        return fmt::format("\"{}\" has to end in .svg or .png", path);
      },
      "");
}

/// Accepts paths of files to read; `which` names their contents.
CLI::Validator file_of(const std::string& which) {
  return CLI::Validator(
      [which](const std::string& path) {
        return path.empty() ? "the path is empty; give that of " + which : std::string();
      },
      "");
}

std::string now_iso8601() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

constexpr const char* empty_picture =
    R"(<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>)";

/// Reads the report at `path`, which `option` has.
tax_report report_at(const std::string& path, const char* option) {
  std::string text;
  try {
    text = text_of_file(path);
  } catch (const error& e) {
    throw error(e.code(),
                fmt::format("{}: {}; give a file that untax taxes --json wrote", option, e.what()));
  }
  try {
    return from_json(text);
  } catch (const error& e) {
    throw error(e.code(), fmt::format("{}: {}: {}", option, path, e.what()));
  }
}

/// The report of --compare; nothing without that option.
std::optional<tax_report> other_report(const taxes_options& options) {
  if (options.compare.empty()) return std::nullopt;
  return report_at(options.compare, "--compare");
}

void write_reports(const taxes_options& options, const tax_report& report) {
  if (!options.json.empty()) write_text(options.json, to_json(report));
  if (!options.html.empty()) write_text(options.html, render_html(report));
  if (!options.plot.empty()) {
    const std::string drawn = render_plot(report);
    write_text(options.plot, options.plot.ends_with(".png") ? png_of(drawn) : drawn);
  }
  if (options.to_stdout()) return;
  if (!options.json.empty()) print("JSON: " + options.json + "\n");
  if (!options.html.empty()) print("HTML: " + options.html + "\n");
  if (!options.plot.empty()) print("Plot: " + options.plot + "\n");
}

tax_report describe_run(const taxes_options& options) {
  const machine_facts machine = read_machine();
  tax_report report;
  report.machine = machine.system;
  report.cpu = machine.cpu;
  report.cores = machine.cores;
  report.commit = build_commit();
  report.date = now_iso8601();
  report.version = version;
  report.repeats = options.repeats;
  return report;
}

/// Prints the report and writes its files. Throws `unsupported` if it has no rows.
void finish_report(const taxes_options& options, const tax_report& report) {
  if (report.rows.empty()) {
    throw error(errc::unsupported,
                report.unmeasured.empty()
                    ? "none of the operations can be measured here: there is no operation"
                    : fmt::format("none of the operations can be measured here: {}",
                                  report.unmeasured.front().reason));
  }
  if (!options.to_stdout()) print(render_table(report, width(stream::out), style(stream::out)));
  if (const auto other = other_report(options); other && !options.to_stdout())
    print("\n" + render_comparison(report, *other, width(stream::out), style(stream::out)));
  write_reports(options, report);
}

/// Simulations of each step without --repeat; few, since they differ by little.
constexpr int usual_simulations = 3;
constexpr int usual_ranks_of_machine = 8;

/// Sets options that --machine leaves open, and refuses options that contradict it.
void settle(const CLI::App& verb, taxes_options& options, const prediction_source& source) {
  for (const char* other : {"--backend", "--workers", "--trace"}) {
    if (verb.count(other) > 0) {
      throw error(
          errc::invalid_argument,
          fmt::format("{} means nothing with --machine, which runs nothing; leave it out", other));
    }
  }
  options.what.backend = "cuda";
  if (verb.count("--repeat") == 0) options.repeats = usual_simulations;
  if (verb.count("--tensor-parallel") == 0)
    options.what.ranks = std::min(source.machine.gpus, usual_ranks_of_machine);
}

/// Refuses options that contradict --scale.
void refuse_with_scale(const CLI::App& verb, const taxes_options& options) {
  if (!options.plot.empty() || !options.html.empty()) {
    throw error(errc::invalid_argument,
                fmt::format("{} shows one number of ranks, and means nothing with --scale; leave "
                            "one of them out",
                            options.plot.empty() ? "--html" : "--plot"));
  }
  if (verb.count("--compare") > 0) {
    throw error(errc::invalid_argument,
                "--compare takes a report of one number of ranks, and means nothing with --scale; "
                "leave one of them out");
  }
  if (verb.count("--tensor-parallel") > 0) {
    throw error(errc::invalid_argument,
                "--tensor-parallel (--ranks) means nothing with --scale, which sets the numbers of "
                "ranks; leave one of them out");
  }
}

/// Predicts for each number of ranks of --scale, and prints and writes the curve.
void predict_scale(const CLI::App& verb, const taxes_options& options,
                   const prediction_source& source) {
  refuse_with_scale(verb, options);
  const auto points =
      scale_of(verb, options.what, source, counts_of(options.scale), options.repeats);
  const std::string model =
      options.what.model.empty() ? options.what.operator_name : load_model(options.what.model).name;
  if (!options.json.empty()) write_text(options.json, json_of(points, source, model));
  if (options.json == "-") return;
  print(wrapped(fmt::format("The taxes of {}, {} tokens, by ranks; microseconds of an average "
                            "layer, {}",
                            model, options.what.tokens, source.text),
                width(stream::out)) +
        "\n" + text_of(points, width(stream::out), style(stream::out).utf8));
}

int predict(const CLI::App& verb, taxes_options options) {
  const prediction_source source = load_source(options.machine);
  settle(verb, options, source);
  if (verb.count("--scale") > 0) {
    predict_scale(verb, options, source);
    return 0;
  }
  tax_report report = describe_run(options);
  report.predicted = source.text;
  const taxes_plan plan = plan_of(verb, options.what, report);
  std::int64_t steps = 0;
  progress_bar* shown = nullptr;
  const auto backend = make_predicted_backend(source.machine, source.known, options.what.ranks,
                                              options.repeats, [&shown] { shown->advance(); });
  for (const auto& op : plan.operations) steps += backend->steps_of(op);
  {
    progress_bar bar("taxes of " + report.model, steps);
    shown = &bar;
    measure_into(report, *backend, plan.operations, [](const layer_operation&) {});
  }
  finish_report(options, report);
  return 0;
}

int measure(const CLI::App& verb, const taxes_options& options) {
  if (options.what.ranks > most_measured_ranks) {
    throw error(errc::invalid_argument,
                fmt::format("--tensor-parallel: \"{}\" is not allowed; it has to be a whole number "
                            "between 1 and {}, or up to {} with --machine",
                            options.what.ranks, most_measured_ranks, most_predicted_ranks));
  }
  tax_report report = describe_run(options);
  const taxes_plan plan = plan_of(verb, options.what, report);
  ablation_options ablation;
  ablation.backend = plan.backend;
  ablation.ranks = options.what.ranks;
  ablation.repeats = options.repeats;
  ablation.workers = options.workers;
  progress_bar* shown = nullptr;
  ablation.progress = [&shown] { shown->advance(); };
  const auto backend = make_tax_backend(ablation, plan.operations);
  require_traceable(options.trace, plan.backend);
  trace_recording recording(options.trace);
  const machine_load before = read_load();
  std::int64_t steps = 0;
  for (const auto& op : plan.operations) steps += backend->steps_of(op);
  {
    progress_bar bar("taxes of " + report.model, steps);
    shown = &bar;
    measure_into(report, *backend, plan.operations, [&](const layer_operation& op) {
      bar.relabel(fmt::format("{} {}", report.model, op.name));
    });
  }
  report.warnings = load_warnings(read_machine(), before, read_load(),
                                  plan.backend == memory_kind::host ? ablation.ranks : 0);
  std::string traced;
  if (recording.active()) {
    const trace_record record = recording.finish();
    add_traces(report, record);
    traced = fmt::format("Trace: {} ({})\n", options.trace, record.summary());
  }
  finish_report(options, report);
  if (!options.to_stdout()) print(traced);
  return 0;
}

/// The request of --chain. By default a step has few sequences, since each has keys of its own.
chain_request chain_of(const CLI::App& verb, const taxes_options& options) {
  option_check(verb, "--chain")
      .refuse({"--operator", "--layer", "--workers", "--scale", "--trace", "-m", "-n", "-k",
               "--gather", "--heads", "--kv-heads", "--head-dim", "--dtype"},
              "measures a whole model as it is");
  if (options.what.model.empty())
    throw error(errc::invalid_argument, "--chain measures a model; give --model FILE");
  chain_request request;
  request.model = options.what.model;
  request.on_gpus = runs_on_gpus(options.what.backend, load_decoder_config(request.model).type,
                                 options.what.ranks);
  request.ranks = options.what.ranks;
  request.repeats = options.repeats;
  request.layers = options.layers;
  request.tokens = verb.count("--tokens") > 0 ? options.what.tokens : 1;
  taxes_request what = options.what;
  what.tokens = static_cast<int>(request.tokens);
  request.keys = keys_of(what, request.on_gpus ? memory_kind::cuda : memory_kind::host);
  return request;
}

int predict_whole_chain(const CLI::App& verb, taxes_options options) {
  const prediction_source source = load_source(options.machine);
  settle(verb, options, source);
  tax_report report = describe_run(options);
  predict_chain_taxes(chain_of(verb, options), source, report);
  finish_report(options, report);
  return 0;
}

int measure_whole_chain(const CLI::App& verb, const taxes_options& options) {
  if (verb.count("--machine") > 0) return predict_whole_chain(verb, options);
  const chain_request request = chain_of(verb, options);
  tax_report report = describe_run(options);
  const machine_load before = read_load();
  std::optional<progress_bar> bar;
  measure_chain(request, report, [&](std::int64_t done, std::int64_t runs) {
    if (!bar) bar.emplace("taxes of the chain", runs);
    bar->advance();
    if (done == runs) bar.reset();
  });
  report.warnings =
      load_warnings(read_machine(), before, read_load(), request.on_gpus ? 0 : request.ranks);
  finish_report(options, report);
  return 0;
}

/// Shows a report that was measured before, split and judged anew.
int show_report(const CLI::App& verb, const taxes_options& options) {
  option_check(verb, "--report")
      .refuse({"--model",    "--operator", "--backend", "--tensor-parallel",
               "--tokens",   "--keys",     "--layer",   "-m",
               "-n",         "-k",         "--gather",  "--heads",
               "--kv-heads", "--head-dim", "--dtype",   "--repeat",
               "--workers",  "--machine",  "--scale",   "--chain",
               "--layers",   "--trace"},
              "shows what was measured before");
  finish_report(options, report_at(options.report, "--report"));
  return 0;
}

}  // namespace

void add_taxes(CLI::App& app, int& status) {
  auto* verb = app.add_subcommand(
      "taxes", "Measure the cost of bulk-synchronous execution of a model's layers");
  auto options = std::make_shared<taxes_options>();
  add_request_options(*verb, options->what);
  verb->add_option("--repeat", options->repeats,
                   "timed runs of every variant; with --machine 3 simulations unless told")
      ->check(between(1, 10000))
      ->capture_default_str();
  verb->add_option("--workers", options->workers,
                   "computing workers of a rank; 0: as many as the cores allow")
      ->check(between(0, 31))
      ->capture_default_str();
  auto* machine =
      verb->add_option(
              "--machine", options->machine,
              "predict the times of GPUs of a described machine: a name such as h200-8, or a file")
          ->transform(shipped_file("machines"))
          ->check(file_of("a description, such as machines/h200-8.json"));
  verb->add_option("--scale", options->scale, "with --machine: for so many ranks each, as 2,4,8")
      ->needs(machine);
  auto* chain = verb->add_flag("--chain", options->chain,
                               "measure the model as one chain, from token to token: steps of "
                               "--tokens sequences with --keys each, or with --keys 0 a prompt");
  verb->add_option("--layers", options->layers, "of --chain: the first ones of the model; 0: all")
      ->needs(chain)
      ->check(at_least(0));
  verb->add_option("--json", options->json, "write the report as JSON; - for stdout")
      ->check(writable_file());
  verb->add_option("--compare", options->compare,
                   "show another report beside this one: a file that --json wrote")
      ->check(file_of("a file that untax taxes --json wrote"));
  verb->add_option("--report", options->report,
                   "measure nothing; show, and write, the report of a file that --json wrote")
      ->check(file_of("a file that untax taxes --json wrote"));
  add_trace_option(*verb, options->trace);
  verb->add_option("--html", options->html, "write the report as one HTML page; - for stdout")
      ->check(writable_file());
  verb->add_option("--plot", options->plot,
                   "draw the waterfall in a file of its own, .svg, or .png where librsvg is")
      ->check(picture_file());
  verb->footer(
      "Each operation of a layer is run in the patterns from bulk_library to fused, interleaved; "
      "the differences are the taxes: launch, bulk synchronisation, locality. Operations that a "
      "backend cannot run are listed as not measured. On the host a trace of further runs, "
      "untimed, is "
      "a second account of the same taxes.\n"
      "Up to 256 tokens are a batch that decodes: attention is measured, too, with 512 keys on the "
      "host and 4096 on GPUs if --keys does not say otherwise. With more tokens it takes --keys."
      "\n\n"
      "  untax taxes --model llama-3.2-1b --tokens 64 --html taxes.html\n"
      "  untax taxes --model llama-3.1-70b --tokens 16 --backend cuda\n"
      "  untax taxes --model my-model/config.json --tokens 16 --machine h200-8\n"
      "  untax taxes --chain --model llama-3.2-1b --ranks 2 --keys 128\n"
      "  untax taxes --chain --model llama-3.1-70b --ranks 8 --machine h200-8\n"
      "  untax taxes --operator all_gather_gemm -m 4096 --backend cuda\n"
      "  untax taxes --report taxes.json --html taxes.html\n"
      "  untax taxes --model llama-3.1-70b --machine h200-8 --scale 2,4,8");
  verb->callback([verb, options, &status] {
    refuse_same_paths({{"--json", options->json},
                       {"--html", options->html},
                       {"--plot", options->plot},
                       {"--trace", options->trace}});
    // Errors of these options are reported before minutes of measuring.
    (void)other_report(*options);
    if (options->plot.ends_with(".png")) (void)png_of(empty_picture);
    if (!options->report.empty()) {
      status = show_report(*verb, *options);
      return;
    }
    if (options->chain) {
      status = measure_whole_chain(*verb, *options);
      return;
    }
    status = verb->count("--machine") == 0 ? measure(*verb, *options) : predict(*verb, *options);
  });
}

}  // namespace untax::cli
