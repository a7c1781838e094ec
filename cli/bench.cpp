#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/memory_kind.hpp>

#include "arguments.hpp"
#include "bench_suites.hpp"
#include "files.hpp"
#include "names.hpp"
#include "trace.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

constexpr const char* bench_footer =
    "untax bench SUITE --help explains a suite, and has its options. Where figures have bars, the "
    "exit status is 1 if one is missed; suites between GPUs take two or more.\n"
    "\n"
    "  untax bench host\n"
    "  untax bench gemm --problems 200 --seed 7 --json gemm.json\n"
    "  untax bench all-gather-gemm --suite decode --ranks 4";

const char* group_of(bench_place place) {
  switch (place) {
    case bench_place::host:
      return "Suites on the host";
    case bench_place::one_gpu:
      return "Suites on one GPU";
    case bench_place::between_gpus:
      return "Suites between GPUs";
  }
  return "";
}

/// "  untax bench gemm --size 16", a line for each example.
std::string examples_of(const bench_suite& suite) {
  std::string text = "  untax bench ";
  for (const char c : std::string_view(suite.examples)) {
    text += c;
    if (c == '\n') text += "  untax bench ";
  }
  return text;
}

int carry_out(const bench_suite& suite, const bench_options& options) {
  refuse_same_paths({{"--json", options.json},
                     {"--trace", options.trace},
                     {"--schema", options.spmv.schema},
                     {"--twins", options.spmv.twins}});
  // Suites on GPUs time the recording, so a few events of each operator are enough.
  const bool on_gpus = suite.place != bench_place::host;
  require_traceable(options.trace, on_gpus ? memory_kind::cuda : memory_kind::host);
  trace_recording recording(options.trace, on_gpus ? 16 : trace_options{}.events_per_worker);
  const int status = suite.run(options);
  if (recording.active()) {
    const trace_record record = recording.finish();
    if (options.json == "-") return status;
    on_gpus ? show_trace_file(record, options.trace) : show_trace(record, options.trace);
  }
  return status;
}

/// Whether a suite has an option of this name that takes a value.
bool takes_value(const CLI::App& verb, const std::string& option) {
  return std::ranges::any_of(verb.get_subcommands([](const CLI::App*) { return true; }),
                             [&](const CLI::App* suite) {
                               const CLI::Option* match = suite->get_option_no_throw(option);
                               return match != nullptr && match->get_items_expected_max() > 0;
                             });
}

}  // namespace

std::vector<std::string> suite_first(const CLI::App& app, std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "bench") return arguments;
  const CLI::App& verb = *app.get_subcommand("bench");
  for (auto at = arguments.begin() + 1; at != arguments.end(); ++at) {
    if (at->starts_with("-")) {
      if (takes_value(verb, *at) && at + 1 != arguments.end()) ++at;
      continue;
    }
    (void)place_in("the suite", *at, names_of_subcommands(verb));
    std::rotate(arguments.begin() + 1, at, at + 1);
    break;
  }
  return arguments;
}

void add_bench(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("bench", "Measure a suite, beside bounds and libraries");
  const auto options = std::make_shared<bench_options>();
  verb->footer(bench_footer);
  expect_subcommand(*verb, "the SUITE");
  for (const bench_suite& suite : bench_suites()) {
    CLI::App* own =
        verb->add_subcommand(suite.name, fmt::format("{}\n\n{}", suite.summary, suite.description));
    own->group(group_of(suite.place));
    own->footer(examples_of(suite));
    suite.add_options(*own, *options);
    add_common_options(*own, *options);
    own->callback([&suite, options, &status] { status = carry_out(suite, *options); });
  }
}

}  // namespace untax::cli
