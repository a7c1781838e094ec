#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/error.hpp>
#include <untax/taxes/load.hpp>
#include <untax/taxes/text_table.hpp>
#include <untax/world/devices.hpp>

#include "arguments.hpp"
#include "bench/suites/own_machine.hpp"
#include "files.hpp"
#include "machine_report.hpp"
#include "ops/timing/judgement.hpp"
#include "output.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

/// The most GPUs of a measurement that a fit uses.
constexpr int most_fitted_ranks = 2;
constexpr int most_ranks = 1 << 20;

struct machine_options {
  std::vector<std::string> words;
  std::string file;
  std::vector<std::string> fit;
  std::vector<std::string> judge;
  std::string out;
  std::string json;
  std::string markdown;
  std::string like;
  int repeats = 20;

  /// Whether a document goes to stdout. Nothing else is printed then.
  [[nodiscard]] bool to_stdout() const { return out == "-" || json == "-" || markdown == "-"; }
};

/// The argument FILE, or that of show FILE. Empty without either.
std::string file_of(const std::vector<std::string>& words) {
  const bool shows = !words.empty() && words.front() == "show";
  if (words.size() == 2 && shows) return words.back();
  if (words.size() == 1 && !shows) return words.front();
  if (words.empty()) return {};
  throw error(errc::invalid_argument,
              fmt::format("untax machine {} is not understood; give one description: untax machine "
                          "FILE (untax machine --help)",
                          fmt::join(words, " ")));
}

/// Writes the JSON of --json, and reports that unless a document goes to stdout.
void write_shown(const machine_options& options, const std::string& text) {
  if (options.json.empty()) return;
  if (options.to_stdout()) return write_text(options.json, text);
  write_json(options.json, text);
}

/// Measures this machine: its GPUs, or its cores if it has none.
timing::machine measure(const machine_options& options) {
  const device_survey gpus = survey_devices(false);
  bench::own_machine_options how{options.repeats, {}};
  if (gpus.devices.empty()) {
    const machine_load before = read_load();
    progress_bar bar("untax machine", bench::steps_of(how));
    how.progress = [&bar] { bar.advance(); };
    timing::machine m = bench::measure_cores(how);
    for (const std::string& warning : load_warnings(read_machine(), before, read_load(), 0))
      complain(warning);
    return m;
  }
  if (options.like.empty()) {
    throw error(errc::invalid_argument,
                "GPUs do not report every number of a description; give the description "
                "that supplies the others, as --like h200-8");
  }
  return bench::measure_gpus(timing::load_machine(options.like), gpus, how);
}

void describe(const timing::machine& m, const machine_options& options) {
  write_shown(options, timing::to_json(m));
  if (!options.to_stdout()) print(text_of(m, width(stream::out), style(stream::out).utf8));
}

int carry_out(const machine_options& options) {
  if (options.file.empty()) {
    const timing::machine m = measure(options);
    if (!options.out.empty()) write_text(options.out, timing::to_json(m));
    describe(m, options);
    return 0;
  }
  if (!options.out.empty() && options.fit.empty() && options.judge.empty()) {
    throw error(errc::invalid_argument,
                "--out means nothing with FILE alone; leave it out, or add --fit or --judge");
  }
  const timing::machine m = timing::load_machine(options.file);
  if (!options.fit.empty()) {
    const measurements known = read_measurements(options.fit, m.device, 1, most_fitted_ranks);
    if (known.figures.empty()) {
      throw error(errc::invalid_argument,
                  fmt::format("--fit: no figures of 1 or 2 x {} among these files", m.device));
    }
    write_text(options.out.empty() ? "-" : options.out, to_json(fit(m, known)));
    return 0;
  }
  if (!options.judge.empty()) {
    predictor p(m, calibration_of(m, options.file));
    // If a machine was not measured, nothing was fitted, so figures of 2 ranks are judged, too.
    const int least = m.measured ? most_fitted_ranks + 1 : 2;
    const measurements known = read_measurements(options.judge, m.device, least, most_ranks);
    if (known.figures.empty()) {
      throw error(
          errc::invalid_argument,
          fmt::format("--judge: no figures of {} x {} or more among these files", least, m.device));
    }
    const judgement result = judge(p, known);
    if (!options.out.empty()) write_text(options.out, summary_of(result, m, p.known()));
    write_shown(options, json_of(result, m));
    if (!options.markdown.empty()) write_text(options.markdown, markdown_of(result, m));
    if (!options.to_stdout())
      print(text_of(result, m, width(stream::out), style(stream::out).utf8));
    return 0;
  }
  describe(m, options);
  return 0;
}

}  // namespace

void add_machine(CLI::App& app) {
  auto* verb = app.add_subcommand(
      "machine", "Measure this machine, or show, check and judge descriptions of others");
  auto options = std::make_shared<machine_options>();
  auto* file = verb->add_option("FILE", options->words,
                                "a description, which is shown: a name such as h200-8, or a file; "
                                "without it this machine is measured")
                   ->expected(0, 2);
  auto* fitting = verb->add_option("--fit", options->fit,
                                   "files or folders of measurements; those of 1 and 2 GPUs are "
                                   "fitted, others are not looked at")
                      ->needs(file);
  verb->add_option("--out", options->out,
                   "where the description of this machine goes, the calibration of --fit, or the "
                   "summary of --judge")
      ->check(writable_file());
  auto* judging =
      verb->add_option(
              "--judge", options->judge,
              "files or folders of measurements; those of more than 2 GPUs are predicted, or "
              "of 2 on, of a machine to which nothing was fitted; a missed bar does not change "
              "the exit status")
          ->excludes(fitting)
          ->needs(file);
  verb->add_option("--like", options->like,
                   "a description whose numbers stand for those that GPUs here do not say")
      ->transform(shipped_file("machines"))
      ->excludes(file);
  verb->add_option("--repeat", options->repeats, "times that each number is measured")
      ->check(between(1, 1'000'000))
      ->capture_default_str()
      ->excludes(file);
  verb->add_option("--json", options->json,
                   "write the shown description or judgement as JSON; - for stdout")
      ->check(writable_file())
      ->excludes(fitting);
  verb->add_option("--markdown", options->markdown, "write the judgement as Markdown; - for stdout")
      ->check(writable_file())
      ->needs(judging);
  verb->footer(
      "  untax machine --out this.json\n"
      "  untax machine --like h200-8 --out these-gpus.json\n"
      "  untax machine h200-8\n"
      "  untax machine h200-8 --judge bench/results\n"
      "  untax machine h200-8 --fit bench/results ops/choice/tables --out "
      "machines/h200.calibration.json");
  verb->callback([options] {
    options->file = file_of(options->words);
    const std::string refusal = resolve_shipped("machines", options->file);
    if (!refusal.empty()) throw error(errc::invalid_argument, refusal);
    refuse_same_paths(
        {{"--out", options->out}, {"--json", options->json}, {"--markdown", options->markdown}});
    carry_out(*options);
  });
}

}  // namespace untax::cli
