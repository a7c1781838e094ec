#include "taxes_chain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <list>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/pattern.hpp>
#include <untax/decoder/decoder.hpp>
#include <untax/decoder/shares.hpp>
#include <untax/taxes/timing.hpp>
#include <untax/world/devices.hpp>
#include <untax/world/launch.hpp>

#include "decoder/operators.hpp"
#include "engines/bulk/communicator.hpp"
#include "engines/bulk/library_gemm.hpp"
#include "output.hpp"
#include "taxes_chain_predicted.hpp"
#include "taxes_chain_rows.hpp"

namespace untax::cli {
namespace {

/// Steps become graphs at the second run; the third run warms up the graphs.
constexpr int warm_ups = 3;
/// Tokens of a prefill that fills the cache.
constexpr std::int64_t most_prompt_tokens = 2048;
constexpr std::uint64_t weights_seed = 1;

bool is_step(const chain_request& request) { return request.keys > 0; }

decoder_config first_layers(decoder_config config, std::int64_t layers) {
  config.layers = layers;
  config.windows.resize(static_cast<std::size_t>(layers));
  return config;
}

decoder_weights first_layers(decoder_weights weights, std::int64_t layers) {
  weights.layers.resize(static_cast<std::size_t>(layers));
  return weights;
}

decoder_options options_of(const chain_request& request, const decoder_config& config) {
  decoder_options options;
  options.sequences = is_step(request) ? request.tokens : 1;
  options.tokens = is_step(request) ? request.keys + warm_ups + request.repeats : request.tokens;
  options.prompt_tokens =
      is_step(request) ? std::min(request.keys, most_prompt_tokens) : request.tokens;
  if (options.tokens > config.positions) {
    throw error(errc::invalid_argument,
                fmt::format("{} tokens and the measured steps take {} positions; {} has {}",
                            is_step(request) ? request.keys : request.tokens, options.tokens,
                            request.model.string(), config.positions));
  }
  return options;
}

std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary,
                                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocabulary)));
  return tokens;
}

/// The part of a rank as a separate model, which sends nothing; none if parts differ.
std::optional<decoder_config> own_part(const decoder_config& config, int ranks) {
  if (ranks == 1 || config.heads % ranks != 0 || config.kv_heads % ranks != 0 ||
      config.intermediate % (8 * ranks) != 0 || config.vocabulary % (8 * ranks) != 0) {
    return std::nullopt;
  }
  decoder_config part = config;
  part.heads /= ranks;
  part.kv_heads /= ranks;
  part.intermediate /= ranks;
  part.vocabulary /= ranks;
  return part;
}

/// A decoder whose runs are measured: steps of sequences with keys, or prompts.
class measured_chain {
 public:
  measured_chain(world& w, const chain_request& request, const decoder_config& config,
                 const decoder_weights& weights, const decoder_options& options)
      : model_(w, config, weights, options), keys_(request.keys) {
    if (keys_ == 0) {
      tokens_ = random_tokens(request.tokens, config.vocabulary, 1);
      return;
    }
    for (std::int64_t s = 0; s < request.tokens; ++s) {
      sequences_.push_back(model_.add());
      const auto prompt =
          random_tokens(request.keys, config.vocabulary, static_cast<std::uint64_t>(s) + 1);
      fill(sequences_.back(), prompt);
      tokens_.push_back(model_.read_tokens().front());
    }
  }

  void run() {
    if (keys_ > 0) return model_.decode(sequences_, tokens_);
    const int sequence = model_.add();
    model_.prefill(std::array{decoder::prompt{.sequence = sequence, .tokens = tokens_}});
    model_.remove(sequence);
  }

  /// The tokens that follow the prompts: those that a step takes.
  [[nodiscard]] std::vector<std::int32_t> following() const {
    return keys_ > 0 ? tokens_ : model_.read_tokens();
  }

 private:
  void fill(int sequence, std::span<const std::int32_t> prompt) {
    const auto most = static_cast<std::size_t>(model_.options().prompt_tokens);
    for (std::size_t at = 0; at < prompt.size(); at += most) {
      const auto part = prompt.subspan(at, std::min(most, prompt.size() - at));
      model_.prefill(std::array{decoder::prompt{.sequence = sequence, .tokens = part}});
    }
  }

  decoder model_;
  std::int64_t keys_;
  std::vector<int> sequences_;
  std::vector<std::int32_t> tokens_;  ///< of a run
};

struct measured_times {
  chain_times times;
  std::size_t equal_tokens = 0;  ///< tokens after the prompts that all ways have in common
  std::size_t tokens = 0;        ///< all tokens after the prompts
};

/// The decoders of one rank: all ways, each with all layers and with the first.
class chains {
 public:
  chains(world& w, const chain_request& request, const decoder_config& config)
      : request_(&request),
        own_(decoder::random(w, config, weights_seed, loading())),
        alone_(alone_beside(w)) {
    decoder_options options = options_of(request, config);
    for (const chain_way& way : chain_ways) {
      options.how = way.how;
      options.launch = way.launch;
      options.graphs = way.launch == launch_mode::graph;
      add(w, config, options);
    }
    // `options` are now those of E4.
    if (const auto part = own_part(config, w.size())) add(alone_, *part, options);
  }

  [[nodiscard]] measured_times measure(world& w, const std::function<void()>& after_run) {
    timed_variants timed;
    timed.warmups = warm_ups;
    timed.repeats = request_->repeats;
    timed.after_run = after_run;
    for (measured_chain& chain : chains_) timed.run.emplace_back([&chain] { chain.run(); });
    auto seconds = seconds_interleaved(w, timed);
    measured_times result;
    chain_times& times = result.times;
    const std::size_t depths = has_single_layers() ? 2 : 1;
    const auto taken = [&](std::size_t way) {
      chain_seconds of_way{.model = std::move(seconds[way * depths]), .single = {}};
      if (depths > 1) of_way.single = std::move(seconds[way * depths + 1]);
      return of_way;
    };
    for (std::size_t i = 0; i < chain_ways.size(); ++i) times.ways.push_back(taken(i));
    if (seconds.size() > chain_ways.size() * depths) times.alone = taken(chain_ways.size());
    compare_tokens(result);
    return result;
  }

  [[nodiscard]] std::int64_t runs() const {
    return static_cast<std::int64_t>(chains_.size()) * (warm_ups + request_->repeats);
  }

 private:
  /// The options of the decoder that only holds the weights and runs nothing.
  static decoder_options loading() {
    decoder_options least;
    least.sequences = 1;
    least.tokens = 1;
    least.page_size = 1;
    least.prompt_tokens = 1;
    return least;
  }

  [[nodiscard]] bool has_single_layers() const { return own_.config().layers > 1; }

  void add(world& w, const decoder_config& config, const decoder_options& options) {
    chains_.emplace_back(w, *request_, config, own_.weights(), options);
    if (!has_single_layers()) return;
    chains_.emplace_back(w, *request_, first_layers(config, 1), first_layers(own_.weights(), 1),
                         options);
  }

  void compare_tokens(measured_times& times) const {
    const std::size_t depths = has_single_layers() ? 2 : 1;
    std::vector<std::vector<std::int32_t>> tokens;
    for (std::size_t i = 0; i < chain_ways.size(); ++i)
      tokens.push_back(
          std::next(chains_.begin(), static_cast<std::ptrdiff_t>(i * depths))->following());
    times.tokens = tokens.front().size();
    for (std::size_t t = 0; t < times.tokens; ++t) {
      times.equal_tokens +=
          std::ranges::all_of(tokens, [&](const auto& way) { return way[t] == tokens.front()[t]; });
    }
  }

  const chain_request* request_;
  decoder own_;
  world alone_;
  std::list<measured_chain> chains_;
};

/// The notes of a run and of the model.
void add_run(tax_report& report, const chain_request& request, const decoder_config& config,
             std::int64_t all_layers) {
  std::vector<std::string>& notes = report.notes;
  notes.push_back(is_step(request)
                      ? fmt::format("A run is a step of {}, each with {} that are its own.",
                                    counted(request.tokens, "sequence"),
                                    counted(request.keys, "key"))
                      : fmt::format("A run is a prompt of {}.", counted(request.tokens, "token")));
  if (config.layers < all_layers) {
    notes.push_back(
        fmt::format("The model is cut to the first {} of {} layers.", config.layers, all_layers));
  }
}

void add_notes(tax_report& report, const chain_request& request, const decoder_config& config,
               std::int64_t all_layers, const measured_times& measured) {
  std::vector<std::string>& notes = report.notes;
  if (report.rows.size() > 1) {
    notes.push_back(fmt::format(
        "The model and the same model with its first layer alone are measured in turn. A layer is "
        "their difference over {}; the rest is embedding, first norm and head. The average layer "
        "has its part of these.",
        counted(config.layers - 1, "layer")));
  } else if (config.layers > 1) {
    notes.emplace_back(
        "Layers and the rest of the model are not told apart: the times of the model and of its "
        "first layer alone spread too much for their difference. More runs, or a quieter machine, "
        "would do.");
  }
  add_run(report, request, config, all_layers);
  notes.push_back(fmt::format(
      "E0 and E1 multiply by {} and sum over ranks {}; E2 has products and collectives of untax, "
      "one after another; E4 has the operators that overlap and fuse. Attention, rotation and "
      "norms "
      "are those of untax in all steps. Weights are random.",
      request.on_gpus ? "cuBLASLt" : "OpenBLAS", request.on_gpus ? "by NCCL" : "between barriers"));
  if (request.on_gpus && !is_step(request)) {
    notes.emplace_back(
        "Prompts are launched one by one in all steps, since they are in no graph: E1 is E0 once "
        "more, and the launch tax is that of chance.");
  }
  if (measured.times.alone) {
    notes.emplace_back(
        "The bound is E4 of the part of a rank as a model of its own, which sends nothing and "
        "waits "
        "for nobody.");
  }
  notes.push_back(fmt::format(
      "Of the tokens that follow the prompts, {} of {} {} equal in all steps.{}",
      measured.equal_tokens, measured.tokens, measured.tokens == 1 ? "is" : "are",
      measured.equal_tokens == measured.tokens
          ? ""
          : " Sums in another order are rounded otherwise, and of two logits that are nearly equal "
            "another one is the largest."));
}

void describe(tax_report& report, const chain_request& request) {
  report.backend = request.on_gpus ? "cuda" : "host";
  if (!request.on_gpus) return;
  const device_survey survey = survey_devices(false);
  if (!survey.devices.empty())
    report.gpus = fmt::format("{} x {}", request.ranks, survey.devices.front().name);
  report.driver = survey.driver;
  report.libraries = bulk::blas().text + ", " + bulk::nccl().text;
}

std::string name_of_model(const std::filesystem::path& file) {
  return file.filename() == "config.json" ? file.parent_path().filename().string()
                                          : file.stem().string();
}

/// A model with the layers of the request.
struct chain_model {
  decoder_config config;
  std::int64_t all_layers;  ///< of the file
};

chain_model model_of(const chain_request& request) {
  decoder_config config = load_decoder_config(request.model);
  if (request.layers > config.layers) {
    throw error(errc::invalid_argument,
                fmt::format("--layers is {}; {} has {} layers", request.layers,
                            request.model.string(), config.layers));
  }
  const std::int64_t all_layers = config.layers;
  if (request.layers > 0) config = first_layers(std::move(config), request.layers);
  (void)options_of(request, config);  // throws refusals before ranks begin
  return {.config = std::move(config), .all_layers = all_layers};
}

void name_chain(const chain_request& request, const decoder_config& config, tax_report& report) {
  report.model = name_of_model(request.model);
  report.tensor_parallel = request.ranks;
  report.tokens = static_cast<int>(request.tokens);
  report.type = config.type;
  report.layers = static_cast<int>(config.layers);
}

}  // namespace

void predict_chain_taxes(const chain_request& request, const prediction_source& source,
                         tax_report& report) {
  const auto [config, all_layers] = model_of(request);
  name_chain(request, config, report);
  report.backend = "cuda";
  report.gpus = fmt::format("{} x {}", request.ranks, source.machine.device);
  report.predicted = source.text;
  report.rows = predicted_chain(request, config, source);
  add_run(report, request, config, all_layers);
  report.notes.emplace_back(
      "A step is predicted from its parts: products and attention as they take alone, sums over "
      "ranks, and a start for each kernel, or in a step of one kernel for each time that its "
      "blocks meet. A layer is the average one.");
}

void measure_chain(const chain_request& request, tax_report& report,
                   const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto [config, all_layers] = model_of(request);
  measured_times measured;
  world_options settings;
  if (request.on_gpus) settings.memory = memory_kind::cuda;
  (request.on_gpus ? run_gpus : run_threads)(
      request.ranks,
      [&, &model = config](world& w) {
        chains decoders(w, request, model);
        std::int64_t done = 0;
        std::function<void()> after_run;
        if (w.rank() == 0 && progress) after_run = [&] { progress(++done, decoders.runs()); };
        measured_times own = decoders.measure(w, after_run);
        if (w.rank() == 0) measured = std::move(own);
      },
      settings);
  name_chain(request, config, report);
  describe(report, request);
  layer_operation op;
  op.m = request.tokens;
  op.n = config.hidden;
  op.k = request.keys;
  op.layers = static_cast<int>(config.layers);
  op.type = config.type;
  report.rows = chain_rows(measured.times, op);
  add_notes(report, request, config, all_layers, measured);
}

}  // namespace untax::cli
