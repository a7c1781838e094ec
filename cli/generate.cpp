#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/core/pattern.hpp>
#include <untax/decoder/generate.hpp>
#include <untax/taxes/text_table.hpp>
#include <untax/taxes/timing.hpp>
#include <untax/world/launch.hpp>
#include <untax/world/placement.hpp>

#include "arguments.hpp"
#include "files.hpp"
#include "names.hpp"
#include "output.hpp"
#include "run_request.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

struct generate_request {
  std::string model;
  bool random_weights = false;
  std::int64_t prompt = 16;
  std::vector<std::int32_t> token_ids;  ///< of the prompts, in place of random ones
  std::int64_t tokens = 16;
  std::int64_t batch = 1;
  std::optional<int> ranks;
  std::string backend = "auto";
  std::string type;
  std::uint64_t seed = 1;
  std::string beside;
  int repeats = 3;
  std::string json;
};

/// A way to run the model, and the tokens that it generated.
struct generated_way {
  std::string name;  ///< "untax", or "library, graph"
  generation result;
};

struct library_way {
  const char* name;
  launch_mode launch;
};

constexpr std::array library_ways = {library_way{"library, graph", launch_mode::graph},
                                     library_way{"library, eager", launch_mode::eager}};

decoder_config config_of(const generate_request& request) {
  decoder_config config = load_decoder_config(request.model);
  if (!request.type.empty()) {
    config.type = named("--dtype", request.type, std::vector{dtype::f32, dtype::f16, dtype::bf16});
  }
  return config;
}

decoder_options options_of(const generate_request& request, const decoder_config& config) {
  // Activations of prompts of more tokens take memory and save no time.
  constexpr std::int64_t most = 8192;
  decoder_options options;
  options.sequences = request.batch;
  options.graphs = true;
  options.tokens = request.prompt + request.tokens;
  options.prompt_tokens = std::min(request.batch * request.prompt, std::max(most, request.prompt));
  if (options.tokens > config.positions) {
    throw error(errc::invalid_argument,
                fmt::format("--prompt {} and --tokens {} are {} tokens; {} has positions for {}",
                            request.prompt, request.tokens, options.tokens, request.model,
                            config.positions));
  }
  return options;
}

std::vector<std::vector<std::int32_t>> prompts_of(const generate_request& request,
                                                  const decoder_config& config) {
  std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(request.batch),
                                                 request.token_ids);
  if (!request.token_ids.empty()) return prompts;
  std::mt19937_64 random(request.seed);
  for (auto& prompt : prompts) {
    for (std::int64_t i = 0; i < request.prompt; ++i) {
      prompt.push_back(
          static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(config.vocabulary)));
    }
  }
  return prompts;
}

/// The medians of some generations, and the tokens of the first.
generation median_of(const std::vector<generation>& runs) {
  generation result = runs.front();
  const auto middle = [&runs](double generation::*figure) {
    std::vector<double> seconds;
    for (const generation& run : runs) seconds.push_back(run.*figure);
    return spread_of(std::move(seconds)).median;
  };
  for (double generation::*figure :
       {&generation::first_token_seconds, &generation::step_seconds, &generation::seconds}) {
    result.*figure = middle(figure);
  }
  return result;
}

/// All ways, in turn, with the weights of `own`.
std::vector<generated_way> compared(world& w, decoder& own, const generate_request& request,
                                    const std::vector<std::vector<std::int32_t>>& prompts) {
  std::vector<generated_way> ways{{"untax", {}}};
  std::vector<decoder> by_library;
  by_library.reserve(library_ways.size());
  std::vector<decoder*> models{&own};
  for (const library_way& way : library_ways) {
    decoder_options options = own.options();
    options.how = pattern::bulk_library;
    options.launch = way.launch;
    options.graphs = way.launch == launch_mode::graph;
    by_library.emplace_back(w, own.config(), own.weights(), options);
    models.push_back(&by_library.back());
    ways.push_back({way.name, {}});
  }
  std::vector<std::vector<generation>> runs(models.size());
  // The number of steps before the timed ones. Where there are graphs, the second step is captured.
  constexpr std::int64_t warm_up = 3;
  w.barrier();
  (void)generate_in_turn(models, prompts, std::min(request.tokens, warm_up));
  for (int repeat = 0; repeat < request.repeats; ++repeat) {
    w.barrier();
    std::vector<generation> results = generate_in_turn(models, prompts, request.tokens);
    for (std::size_t i = 0; i < results.size(); ++i) runs[i].push_back(std::move(results[i]));
  }
  for (std::size_t i = 0; i < ways.size(); ++i) ways[i].result = median_of(runs[i]);
  // The library guarantees no order of additions; untax does.
  for (const generation& run : runs.front()) {
    if (run.tokens == runs.front().front().tokens) continue;
    throw error(
        errc::internal,
        fmt::format("rank {}: two runs of the same prompts generated different tokens", w.rank()));
  }
  return ways;
}

std::vector<generated_way> generated_by(world& w, const generate_request& request,
                                        const decoder_config& config) {
  const decoder_options options = options_of(request, config);
  decoder model = request.random_weights ? decoder::random(w, config, request.seed, options)
                                         : decoder::load(w, request.model, config, options);
  const auto prompts = prompts_of(request, config);
  if (!request.beside.empty()) return compared(w, model, request, prompts);
  w.barrier();
  return {{"untax", generate(model, prompts, request.tokens)}};
}

double tokens_per_second(const generate_request& request, const generation& result) {
  return static_cast<double>(request.batch * request.tokens) / result.seconds;
}

/// The first token in which two generations differ.
struct token_place {
  std::size_t sequence = 0;
  std::size_t token = 0;
};

std::optional<token_place> first_difference(const generation& a, const generation& b) {
  std::optional<token_place> first;
  for (std::size_t s = 0; s < a.tokens.size(); ++s) {
    const auto [left, right] = std::ranges::mismatch(a.tokens[s], b.tokens[s]);
    const auto token = static_cast<std::size_t>(left - a.tokens[s].begin());
    if (left != a.tokens[s].end() && (!first || token < first->token)) first = {s, token};
  }
  return first;
}

nlohmann::ordered_json figures_of(const generate_request& request, const generation& result) {
  return {{"first_token_seconds", result.first_token_seconds},
          {"token_seconds", result.step_seconds},
          {"tokens_per_second", tokens_per_second(request, result)},
          {"tokens", result.tokens}};
}

nlohmann::ordered_json json_of(const generate_request& request,
                               const std::vector<generated_way>& ways, int ranks,
                               std::string_view kind) {
  const generation& own = ways.front().result;
  nlohmann::ordered_json out = {{"format", "untax-generate"},
                                {"model", request.model},
                                {"random_weights", request.random_weights},
                                {"ranks", ranks},
                                {"kind", kind},
                                {"batch", request.batch},
                                {"prompt", request.prompt}};
  out.update(figures_of(request, own));
  if (ways.size() == 1) return out;
  out["repeats"] = request.repeats;
  for (std::size_t i = 1; i < ways.size(); ++i) {
    const generation& other = ways[i].result;
    nlohmann::ordered_json beside = {{"way", ways[i].name}};
    beside.update(figures_of(request, other));
    beside["first_token_factor"] = other.first_token_seconds / own.first_token_seconds;
    if (own.step_seconds > 0) beside["token_factor"] = other.step_seconds / own.step_seconds;
    const std::optional<token_place> place = first_difference(own, other);
    beside["tokens_equal"] = !place;
    if (place)
      beside["first_difference"] = {{"sequence", place->sequence}, {"token", place->token}};
    out["beside"].push_back(beside);
  }
  return out;
}

/// Whether the ways generated the same tokens: a sentence, or one for each way that did not.
std::vector<std::string> token_findings(const std::vector<generated_way>& ways) {
  std::vector<std::string> findings;
  for (std::size_t i = 1; i < ways.size(); ++i) {
    const auto place = first_difference(ways.front().result, ways[i].result);
    if (!place) continue;
    findings.push_back(fmt::format(
        "The tokens of untax and of \"{}\" differ, first in token {} of sequence {}: sums in "
        "another order are rounded otherwise, and of two logits that are nearly equal another one "
        "is the largest.",
        ways[i].name, place->token + 1, place->sequence + 1));
  }
  if (findings.empty()) findings.emplace_back("The tokens of untax and of the library are equal.");
  return findings;
}

/// A line for each figure, with a column for each way. The library's columns also show the factor
/// to untax: above 1 untax is quicker.
std::string table_of(const generate_request& request, const std::vector<generated_way>& ways) {
  std::vector<text_table::column> columns = {{"", text_table::align::left}};
  for (const generated_way& way : ways) {
    columns.push_back({way.name, text_table::align::right});
    if (&way != &ways.front()) columns.push_back({"factor", text_table::align::right});
  }
  text_table table(columns);
  const auto line = [&](const char* title, const auto& figure, const char* format, bool less) {
    std::vector<std::string> cells = {title};
    for (const generated_way& way : ways) {
      const double value = figure(way.result);
      cells.push_back(fmt::format(fmt::runtime(format), value));
      if (&way == &ways.front()) continue;
      const double own = figure(ways.front().result);
      cells.push_back(fmt::format("{:.2f}", less ? value / own : own / value));
    }
    table.add(std::move(cells));
  };
  line(
      "time to first token", [](const generation& g) { return 1e3 * g.first_token_seconds; },
      "{:.3f} ms", true);
  if (request.tokens > 1)
    line(
        "time per token", [](const generation& g) { return 1e3 * g.step_seconds; }, "{:.3f} ms",
        true);
  line(
      "tokens a second", [&](const generation& g) { return tokens_per_second(request, g); },
      "{:.1f}", false);
  return table.render(width(stream::out), style(stream::out).utf8);
}

void present(const generate_request& request, const std::vector<generated_way>& ways, int ranks,
             std::string_view kind) {
  const generation& result = ways.front().result;
  if (!request.json.empty()) {
    write_text(request.json, json_of(request, ways, ranks, kind).dump() + "\n");
    if (request.json == "-") return;
  }
  constexpr std::size_t most = 16;
  std::vector<std::int32_t> shown = result.tokens.front();
  shown.resize(std::min(shown.size(), most));
  show("{}, {} weights, {} ({}), {}, prompts of {}\n",
       std::filesystem::path(request.model).filename().string(),
       request.random_weights ? "random" : "its", counted(ranks, "rank"), kind,
       counted(request.batch, "sequence"), counted(request.prompt, "token"));
  if (ways.size() == 1) {
    show("time to first token  {:.3f} ms\n", 1e3 * result.first_token_seconds);
    show("time per token       {:.3f} ms\n", 1e3 * result.step_seconds);
    show("tokens a second      {:.1f}\n", tokens_per_second(request, result));
  } else {
    print(table_of(request, ways));
  }
  show("first sequence       {}{}\n", fmt::join(shown, " "),
       shown.size() < result.tokens.front().size() ? " ..." : "");
  if (ways.size() == 1) return;
  for (const std::string& text : token_findings(ways)) print(wrapped(text, width(stream::out)));
  print(wrapped(
      fmt::format(
          "Medians of {}, step by step in turn; a factor above 1 says that untax is quicker. "
          "The library is {}; attention, rotation and norms are those of untax "
          "in all columns.",
          counted(request.repeats, "run"),
          kind == "GPUs" ? "cuBLASLt and NCCL; prompts are launched eagerly"
                         : "OpenBLAS, with copies and barriers between kernels"),
      width(stream::out)));
}

int run_generate(generate_request request) {
  if (!request.token_ids.empty()) {
    request.prompt = static_cast<std::int64_t>(request.token_ids.size());
  }
  if (!request.beside.empty()) (void)place_in("--beside", request.beside, {"library"});
  const decoder_config config = config_of(request);
  const placement place = placement_from(environment());
  const bool on_gpus = runs_on_gpus(request.backend, config.type,
                                    std::max(place.world_size, request.ranks.value_or(1)));
  world_options options;
  if (on_gpus) options.memory = memory_kind::cuda;
  if (place.world_size > 1) {
    if (request.ranks && *request.ranks != place.world_size) {
      throw error(errc::invalid_argument,
                  fmt::format("--ranks is {}, but {} started {}; leave --ranks out", *request.ranks,
                              place.launcher, place.world_size));
    }
    world w = world::from_environment(options);
    std::vector<generated_way> ways;
    w.run([&](world& own) { ways = generated_by(own, request, config); });
    if (w.rank() == 0) present(request, ways, w.size(), w.kind());
    return 0;
  }
  std::vector<generated_way> ways;
  const int ranks = request.ranks.value_or(on_gpus ? ranks_on_gpus(0) : 1);
  (on_gpus ? run_gpus : run_threads)(
      ranks,
      [&](world& w) {
        std::vector<generated_way> own = generated_by(w, request, config);
        if (w.rank() == 0) ways = std::move(own);
      },
      options);
  present(request, ways, ranks, on_gpus ? "GPUs" : "threads");
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "generate",
      "Run a model: prompts, then a token of each sequence a step, and how long it took");
  const auto request = std::make_shared<generate_request>();
  verb->add_option("--model", request->model,
                   "a folder with config.json and model.safetensors; with --random-weights a "
                   "configuration, or a name such as llama-3.2-1b")
      ->required()
      ->transform(shipped_file("models"));
  verb->add_flag("--random-weights", request->random_weights, "needs the configuration alone");
  verb->add_option("--prompt", request->prompt, "random tokens of each prompt")
      ->check(between(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--ids", request->token_ids, "the tokens of all prompts: 1,2,3")
      ->delimiter(',')
      ->excludes("--prompt");
  verb->add_option("--tokens", request->tokens, "tokens to generate for each sequence")
      ->check(between(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--batch", request->batch, "sequences at a time")
      ->check(between(1, 4096))
      ->capture_default_str();
  verb->add_option("--ranks", request->ranks, "ranks; by default all GPUs, or 1 on the host")
      ->check(between(1, 64));
  verb->add_option("--backend", request->backend,
                   "host: ranks are threads; cuda: GPUs; auto: GPUs, if there is one for each rank "
                   "and elements have 16 bits")
      ->check(words({"auto", "host", "cuda"}))
      ->capture_default_str();
  verb->add_option("--dtype", request->type, "elements, in place of those of the configuration")
      ->check(words({"fp32", "fp16", "bf16"}));
  verb->add_option("--seed", request->seed, "of random weights and prompts")->capture_default_str();
  auto* beside = verb->add_option("--beside", request->beside,
                                  "library: generate also by library calls, with the same weights")
                     ->check(words({"library"}));
  verb->add_option("--repeat", request->repeats, "runs of each way, in turn")
      ->check(between(1, 1000))
      ->needs(beside)
      ->capture_default_str();
  verb->add_option("--json", request->json, "write the result to a file, or to stdout: -")
      ->check(writable_file());
  verb->footer(
      "Examples:\n"
      "  untax generate --model llama-3.2-1b --random-weights --batch 2 --ranks 2\n"
      "  untax generate --model ./tiny-llama --ids 1,15,27 --tokens 32 --ranks 4\n"
      "  untax generate --model llama-3.1-8b --random-weights --prompt 2048 --batch 16 --beside "
      "library");
  verb->callback([request, &status] { status = run_generate(*request); });
}

}  // namespace untax::cli
