#include "taxes.hpp"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <untax/core/build_info.hpp>
#include <untax/core/error.hpp>
#include <untax/core/version.hpp>
#include <untax/taxes/ablation.hpp>
#include <untax/taxes/machine.hpp>
#include <untax/taxes/model_config.hpp>
#include <untax/taxes/report.hpp>

#include "terminal.hpp"

namespace untax::cli {
namespace {

struct taxes_options {
  std::filesystem::path model;
  int tensor_parallel = 4;
  int tokens = 64;
  int repeats = 20;
  int workers = 0;
  std::filesystem::path json;
  std::filesystem::path html;
};

std::string now_iso8601() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    throw error(errc::invalid_argument,
                fmt::format("cannot write {}; give a path in a folder that you may write to",
                            path.string()));
  }
}

tax_report describe_run(const taxes_options& options, const model_config& model) {
  const machine_facts machine = read_machine();
  tax_report report;
  report.machine = machine.system;
  report.cpu = machine.cpu;
  report.cores = machine.cores;
  report.backend = "host";
  report.commit = build_commit();
  report.date = now_iso8601();
  report.version = version;
  report.model = model.name;
  report.tensor_parallel = options.tensor_parallel;
  report.tokens = options.tokens;
  report.type = model.type;
  report.layers = static_cast<int>(model.layers);
  report.repeats = options.repeats;
  report.notes = layer_notes(model, options.tensor_parallel);
  return report;
}

int measure(const taxes_options& options) {
  const model_config model = load_model(options.model);
  const auto operations = layer_operations(model, options.tensor_parallel, options.tokens);
  tax_report report = describe_run(options, model);

  ablation_options ablation;
  ablation.ranks = options.tensor_parallel;
  ablation.repeats = options.repeats;
  ablation.workers = options.workers;
  std::int64_t runs = 0;
  for (const auto& op : operations) runs += runs_of(op, ablation);
  {
    progress_bar bar("taxes of " + model.name, runs);
    ablation.progress = [&] { bar.advance(); };
    for (const auto& op : operations) {
      bar.relabel(fmt::format("{} {}", model.name, op.name));
      report.rows.push_back(measure_taxes(op, ablation));
    }
  }

  std::fputs(render_table(report, width(stream::out), style(stream::out)).c_str(), stdout);
  if (!options.json.empty()) {
    write_file(options.json, to_json(report));
    fmt::print("JSON: {}\n", options.json.string());
  }
  if (!options.html.empty()) {
    write_file(options.html, render_html(report));
    fmt::print("HTML: {}\n", options.html.string());
  }
  return 0;
}

}  // namespace

void add_taxes(CLI::App& app, int& status) {
  auto* verb = app.add_subcommand(
      "taxes", "What bulk-synchronous execution of a model's layers costs, measured here");
  auto options = std::make_shared<taxes_options>();
  verb->add_option("--model", options->model, "config.json of the model, as Hugging Face has it")
      ->required();
  verb->add_option("--tensor-parallel", options->tensor_parallel, "ranks that share every layer")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  verb->add_option("--tokens", options->tokens, "rows of the activations, all ranks together")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--repeat", options->repeats, "timed runs of every variant")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb->add_option("--workers", options->workers,
                   "computing workers of a rank; 0: as many as the cores allow")
      ->check(CLI::Range(0, 31))
      ->capture_default_str();
  verb->add_option("--json", options->json, "write the report as JSON");
  verb->add_option("--html", options->html, "write the report as one HTML page");
  verb->footer(
      "Each operation of a layer is run in the patterns from bulk_library to fused, interleaved; "
      "the differences are\n"
      "the taxes: launch, bulk synchronisation, locality. Ranks are threads of this machine.\n\n"
      "  untax taxes --model models/llama-3.2-1b.json --tensor-parallel 4 --tokens 64 --html "
      "taxes.html");
  verb->callback([options, &status] { status = measure(*options); });
}

}  // namespace untax::cli
