#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/decoder/generate.hpp>
#include <untax/world/launch.hpp>
#include <untax/world/placement.hpp>

#include "arguments.hpp"
#include "files.hpp"
#include "names.hpp"
#include "output.hpp"
#include "run_request.hpp"
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
  std::string backend = "host";
  std::string type;
  std::uint64_t seed = 1;
  std::string json;
};

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

generation generated_by(world& w, const generate_request& request, const decoder_config& config) {
  const decoder_options options = options_of(request, config);
  decoder model = request.random_weights ? decoder::random(w, config, request.seed, options)
                                         : decoder::load(w, request.model, config, options);
  const auto prompts = prompts_of(request, config);
  w.barrier();
  return generate(model, prompts, request.tokens);
}

void present(const generate_request& request, const generation& result, int ranks,
             std::string_view kind) {
  const auto batch = static_cast<double>(request.batch);
  const double rate = batch * static_cast<double>(request.tokens) / result.seconds;
  if (!request.json.empty()) {
    const nlohmann::ordered_json out = {{"format", "untax-generate"},
                                        {"model", request.model},
                                        {"random_weights", request.random_weights},
                                        {"ranks", ranks},
                                        {"kind", kind},
                                        {"batch", request.batch},
                                        {"prompt", request.prompt},
                                        {"first_token_seconds", result.first_token_seconds},
                                        {"token_seconds", result.step_seconds},
                                        {"tokens_per_second", rate},
                                        {"tokens", result.tokens}};
    write_text(request.json, out.dump() + "\n");
    if (request.json == "-") return;
  }
  constexpr std::size_t most = 16;
  std::vector<std::int32_t> shown = result.tokens.front();
  shown.resize(std::min(shown.size(), most));
  show("{}, {} weights, {} ({}), {}, prompts of {}\n",
       std::filesystem::path(request.model).filename().string(),
       request.random_weights ? "random" : "its", counted(ranks, "rank"), kind,
       counted(request.batch, "sequence"), counted(request.prompt, "token"));
  show("time to first token  {:.3f} ms\n", 1e3 * result.first_token_seconds);
  show("time per token       {:.3f} ms\n", 1e3 * result.step_seconds);
  show("tokens a second      {:.1f}\n", rate);
  show("first sequence       {}{}\n", fmt::join(shown, " "),
       shown.size() < result.tokens.front().size() ? " ..." : "");
}

int run_generate(generate_request request) {
  if (!request.token_ids.empty()) {
    request.prompt = static_cast<std::int64_t>(request.token_ids.size());
  }
  const decoder_config config = config_of(request);
  const bool on_gpus = place_in("--backend", request.backend, {"host", "cuda"}) == 1;
  world_options options;
  if (on_gpus) options.memory = memory_kind::cuda;
  const placement place = placement_from(environment());
  if (place.world_size > 1) {
    if (request.ranks && *request.ranks != place.world_size) {
      throw error(errc::invalid_argument,
                  fmt::format("--ranks is {}, but {} started {}; leave --ranks out", *request.ranks,
                              place.launcher, place.world_size));
    }
    world w = world::from_environment(options);
    generation result;
    w.run([&](world& own) { result = generated_by(own, request, config); });
    if (w.rank() == 0) present(request, result, w.size(), w.kind());
    return 0;
  }
  generation result;
  const int ranks = request.ranks.value_or(on_gpus ? ranks_on_gpus(0) : 1);
  (on_gpus ? run_gpus : run_threads)(
      ranks,
      [&](world& w) {
        generation own = generated_by(w, request, config);
        if (w.rank() == 0) result = std::move(own);
      },
      options);
  present(request, result, ranks, on_gpus ? "GPUs" : "threads");
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
  verb->add_option("--ranks", request->ranks, "ranks; by default 1, or all GPUs")
      ->check(between(1, 64));
  verb->add_option("--backend", request->backend, "host: ranks are threads; cuda: GPUs")
      ->check(words({"host", "cuda"}))
      ->capture_default_str();
  verb->add_option("--dtype", request->type, "elements, in place of those of the configuration")
      ->check(words({"fp32", "fp16", "bf16"}));
  verb->add_option("--seed", request->seed, "of random weights and prompts")->capture_default_str();
  verb->add_option("--json", request->json, "write the result to a file, or to stdout: -")
      ->check(writable_file());
  verb->footer(
      "Examples:\n"
      "  untax generate --model llama-3.2-1b --random-weights --batch 2 --ranks 2\n"
      "  untax generate --model ./tiny-llama --ids 1,15,27 --tokens 32 --ranks 4");
  verb->callback([request, &status] { status = run_generate(*request); });
}

}  // namespace untax::cli
