#include "taxes.hpp"

#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <untax/core/build_info.hpp>
#include <untax/core/error.hpp>
#include <untax/core/version.hpp>
#include <untax/taxes/ablation.hpp>
#include <untax/taxes/load.hpp>
#include <untax/taxes/machine.hpp>
#include <untax/taxes/report.hpp>

#include "arguments.hpp"
#include "output.hpp"
#include "taxes_request.hpp"
#include "terminal.hpp"

namespace untax::cli {
namespace {

struct taxes_options {
  taxes_request what;
  int repeats = 20;
  int workers = 0;
  std::string json;
  std::string html;

  /// Then nothing else is printed.
  [[nodiscard]] bool to_stdout() const { return json == "-" || html == "-"; }
};

std::string now_iso8601() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void write_reports(const taxes_options& options, const tax_report& report) {
  if (!options.json.empty()) write_text(options.json, to_json(report));
  if (!options.html.empty()) write_text(options.html, render_html(report));
  if (options.to_stdout()) return;
  if (!options.json.empty()) print("JSON: " + options.json + "\n");
  if (!options.html.empty()) print("HTML: " + options.html + "\n");
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

int measure(const CLI::App& verb, const taxes_options& options) {
  if (options.json == "-" && options.html == "-") {
    throw error(errc::invalid_argument,
                "--json and --html are both -; stdout takes one of them, so give the other a path");
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
  const auto meter = make_tax_meter(ablation, plan.operations);
  const machine_load before = read_load();
  std::int64_t steps = 0;
  for (const auto& op : plan.operations) steps += meter->steps_of(op);
  {
    progress_bar bar("taxes of " + report.model, steps);
    shown = &bar;
    measure_into(report, *meter, plan.operations, [&](const layer_operation& op) {
      bar.relabel(fmt::format("{} {}", report.model, op.name));
    });
  }
  report.warnings = load_warnings(read_machine(), before, read_load(),
                                  plan.backend == memory_kind::host ? ablation.ranks : 0);
  if (report.rows.empty()) {
    throw error(errc::unsupported, fmt::format("nothing of this can be measured here: {}",
                                               report.unmeasured.front().reason));
  }

  if (!options.to_stdout()) print(render_table(report, width(stream::out), style(stream::out)));
  write_reports(options, report);
  return 0;
}

}  // namespace

void add_taxes(CLI::App& app, int& status) {
  auto* verb = app.add_subcommand(
      "taxes", "What bulk-synchronous execution of a model's layers costs, measured here");
  auto options = std::make_shared<taxes_options>();
  add_request_options(*verb, options->what);
  verb->add_option("--repeat", options->repeats, "timed runs of every variant")
      ->check(between(1, 10000))
      ->capture_default_str();
  verb->add_option("--workers", options->workers,
                   "computing workers of a rank; 0: as many as the cores allow")
      ->check(between(0, 31))
      ->capture_default_str();
  verb->add_option("--json", options->json, "write the report as JSON; - for stdout")
      ->check(writable_file());
  verb->add_option("--html", options->html, "write the report as one HTML page; - for stdout")
      ->check(writable_file());
  verb->footer(
      "Each operation of a layer is run in the patterns from bulk_library to fused, interleaved; "
      "the differences are the taxes: launch, bulk synchronisation, locality. What a backend "
      "cannot run is listed as not measured.\n"
      "Up to 256 tokens are a batch that decodes: attention is measured, too, with 512 keys on the "
      "host and 4096 on GPUs if --keys does not say otherwise. With more tokens it takes --keys."
      "\n\n"
      "  untax taxes --model models/llama-3.2-1b.json --tokens 64 --html taxes.html\n"
      "  untax taxes --model models/llama-3.1-70b.json --tokens 16 --backend cuda\n"
      "  untax taxes --operator all_gather_gemm -m 4096 --backend cuda");
  verb->callback([verb, options, &status] { status = measure(*verb, *options); });
}

}  // namespace untax::cli
