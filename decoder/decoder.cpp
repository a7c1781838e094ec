#include <untax/decoder/decoder.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/decoder/layer.hpp>
#include <untax/decoder/pages.hpp>

#include "decoder/fused_step.hpp"
#include "decoder/head.hpp"
#include "decoder/load_weights.hpp"
#include "decoder/operators.hpp"
#include "decoder/random_weights.hpp"
#include "decoder/safetensors.hpp"
#include "decoder/staged_arrays.hpp"

namespace untax {
namespace {

layer_cache cache_of(const decoder_operators& d, std::shared_ptr<void>& memory) {
  const std::int64_t rows = d.options.pages * d.options.page_size;
  const std::int64_t cols = d.share.kv_heads.size() * d.config.head_dim;
  const std::size_t bytes = static_cast<std::size_t>(rows * cols) * size_of(d.config.type);
  memory = d.backend->allocate(2 * bytes);
  auto* values = static_cast<std::byte*>(memory.get()) + bytes;
  return {.keys = {memory.get(), d.config.type, rows, cols},
          .values = {values, d.config.type, rows, cols}};
}

/// Throws `invalid_argument` for weights that are not this rank's part of the configuration.
class weight_check {
 public:
  explicit weight_check(const decoder_operators& d)
      : c_(d.config), share_(d.share), rank_(d.job->rank()) {}

  void run(const decoder_weights& w) const {
    if (static_cast<std::int64_t>(w.layers.size()) != c_.layers) {
      refuse(fmt::format("weights of {} layers, but the configuration has {}", w.layers.size(),
                         c_.layers));
    }
    expect("embedding", w.embedding, share_.vocabulary.size(), c_.hidden);
    expect("head", w.head, share_.vocabulary.size(), c_.hidden);
    expect("final_norm", w.final_norm, true);
    for (const decoder_layer_weights& layer : w.layers) expect(layer);
  }

 private:
  void expect(const decoder_layer_weights& w) const {
    const std::int64_t queries = share_.heads.size() * c_.head_dim;
    const std::int64_t keys = share_.kv_heads.size() * c_.head_dim;
    expect("qkv", w.qkv, queries + 2 * keys, c_.hidden);
    expect("output", w.output, c_.hidden, queries);
    expect("gate_up", w.gate_up, 2 * share_.intermediate.size(), c_.hidden);
    expect("down", w.down, c_.hidden, share_.intermediate.size());
    expect("qkv_bias", w.qkv_bias, c_.qkv_bias);
    expect("output_bias", w.output_bias, c_.output_bias && rank_ == 0);
    expect("gate_up_bias", w.gate_up_bias, c_.mlp_bias);
    expect("down_bias", w.down_bias, c_.mlp_bias && rank_ == 0);
    expect("q_norm", w.q_norm, c_.head_norms);
    expect("k_norm", w.k_norm, c_.head_norms);
    expect("input_norm", w.input_norm, true);
    expect("mlp_norm", w.mlp_norm, true);
    expect("attention_post_norm", w.attention_post_norm, c_.post_norms);
    expect("mlp_post_norm", w.mlp_post_norm, c_.post_norms);
  }
  void expect(std::string_view name, const const_matrix& m, std::int64_t rows,
              std::int64_t cols) const {
    if (m.data != nullptr && m.type == c_.type && m.rows == rows && m.cols == cols) return;
    refuse(fmt::format("{} is {} [{}, {}]{}; it has to be {} [{}, {}]", name, name_of(m.type),
                       m.rows, m.cols, m.data == nullptr ? " at null" : "", name_of(c_.type), rows,
                       cols));
  }
  void expect(std::string_view name, const void* vector, bool is_needed) const {
    if ((vector != nullptr) == is_needed) return;
    refuse(fmt::format("{} is {}, and the configuration {} it", name, is_needed ? "null" : "given",
                       is_needed ? "has" : "has not"));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw error(errc::invalid_argument, fmt::format("rank {}: decoder: {}", rank_, why));
  }

  const decoder_config& c_;
  const weight_shares& share_;
  int rank_;
};

}  // namespace

struct decoder::state {
  state(world& w, const decoder_config& config, const decoder_weights& given,
        const decoder_options& options)
      : d(plan_decoder_operators(w, config, options)),
        weights(given),
        pages({.pages = d->options.pages,
               .page_size = d->options.page_size,
               .sequences = d->options.sequences,
               .tokens = d->options.tokens}),
        head(d),
        arrays(*d) {
    weight_check(*d).run(weights);
    cache_memory.resize(weights.layers.size());
    for (std::size_t i = 0; i < weights.layers.size(); ++i) {
      caches.push_back(cache_of(*d, cache_memory[i]));
      layers.emplace_back(d, static_cast<std::int64_t>(i), weights.layers[i], caches.back());
    }
    const auto memory = [&](std::int64_t count) {
      return d->backend->allocate(static_cast<std::size_t>(count * config.hidden) *
                                  size_of(config.type));
    };
    fused = fused_step_of(*d, weights, caches);
    embedded = memory(d->rows);
    last = memory(d->options.sequences);
    // The first run of a rank may not wait for another's, which still allocates: where ranks share
    // a GPU, freeing memory waits for all kernels.
    w.barrier();
  }

  state(world& w, const decoder_config& config, weight_source& source,
        const decoder_options& options)
      : state(w, config, own_weights(w, config, source), options) {}
  state(world& w, const decoder_config& config, loaded_weights own, const decoder_options& options)
      : state(w, config, own.weights, options) {
    weight_memory = std::move(own.memory);
  }

  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() { d->backend->end_replays(); }

  static loaded_weights own_weights(world& w, const decoder_config& config, weight_source& source) {
    const auto memory = decoder_backend_of(w);
    return load_weights(config, w.rank(), w.size(), source, *memory);
  }

  /// The normalised rows after the last layer.
  matrix through_layers(const layer_tokens& tokens, const std::int32_t* ids, stream_ref stream) {
    const matrix first = d->view(embedded, tokens.rows, d->config.hidden);
    d->backend->embed(weights.embedding, d->share.vocabulary, ids, d->config.embedding_scale, first,
                      stream);
    layer_state at =
        begin_layers(*d, tokens, as_const(first), weights.layers.front().input_norm, stream);
    const bool is_step = tokens.lengths != nullptr;
    if (fused && is_step && tokens.rows <= fused->most_rows())
      return fused->run(tokens, at, stream);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const void* next =
          i + 1 < layers.size() ? weights.layers[i + 1].input_norm : weights.final_norm;
      at = layers[i].run(tokens, at, next, stream);
    }
    return at.normed;
  }

  void check_tokens(std::span<const std::int32_t> tokens) const {
    for (const std::int32_t token : tokens) {
      if (token >= 0 && token < d->config.vocabulary) continue;
      throw error(errc::invalid_argument,
                  fmt::format("rank {}: decoder: token {}; the vocabulary has {}", d->job->rank(),
                              token, d->config.vocabulary));
    }
  }

  std::shared_ptr<decoder_operators> d;
  decoder_weights weights;
  page_allocator pages;
  decoder_head head;
  staged_arrays arrays;
  std::vector<std::shared_ptr<void>> weight_memory;  ///< if it is its own
  std::vector<std::shared_ptr<void>> cache_memory;
  std::vector<layer_cache> caches;
  std::vector<decoder_layer> layers;
  std::unique_ptr<fused_step> fused;  ///< null where there is none
  std::shared_ptr<void> embedded, last;
  std::int64_t rows = 0;  ///< of the last run or stage
};

decoder::decoder(world& w, const decoder_config& config, const decoder_weights& weights,
                 const decoder_options& options)
    : state_(std::make_unique<state>(w, config, weights, options)) {}
decoder::decoder(std::unique_ptr<state> whole) noexcept : state_(std::move(whole)) {}

decoder decoder::load(world& w, const std::filesystem::path& folder, const decoder_config& config,
                      const decoder_options& options) {
  safetensors_folder files(folder);
  return decoder(std::make_unique<state>(w, config, files, options));
}
decoder decoder::random(world& w, const decoder_config& config, std::uint64_t seed,
                        const decoder_options& options) {
  random_weights values(config, seed);
  return decoder(std::make_unique<state>(w, config, values, options));
}

decoder::decoder(decoder&&) noexcept = default;
decoder& decoder::operator=(decoder&&) noexcept = default;
decoder::~decoder() = default;

int decoder::add() { return state_->pages.add(); }
void decoder::remove(int sequence) { state_->pages.remove(sequence); }
std::int64_t decoder::length(int sequence) const { return state_->pages.length(sequence); }

int decoder::fork(int sequence, stream_ref given) {
  const stream_ref stream = state_->d->backend->begin(given);
  const page_allocator::forked copy = state_->pages.fork(sequence);
  if (!copy.page) return copy.sequence;
  const decoder_operators& d = *state_->d;
  for (const layer_cache& cache : state_->caches) {
    for (const matrix& m : {cache.keys, cache.values}) {
      const auto bytes = static_cast<std::size_t>(d.options.page_size * m.cols) * size_of(m.type);
      auto* start = static_cast<std::byte*>(m.data);
      d.backend->copy(start + bytes * static_cast<std::size_t>(copy.page->to),
                      start + bytes * static_cast<std::size_t>(copy.page->from), bytes, stream);
    }
  }
  d.backend->finish(given);
  return copy.sequence;
}

void decoder::prefill(std::span<const prompt> prompts, stream_ref given) {
  state& s = *state_;
  const stream_ref stream = s.d->backend->begin(given);
  std::vector<page_allocator::growth> growths;
  std::int64_t tokens = 0;
  std::int64_t keys = 0;
  for (const prompt& p : prompts) {
    s.check_tokens(p.tokens);
    const auto count = static_cast<std::int64_t>(p.tokens.size());
    if (count == 0) throw error(errc::invalid_argument, "decoder: a prompt without tokens");
    growths.push_back({.sequence = p.sequence, .tokens = count});
    tokens += count;
    keys += count + s.pages.length(p.sequence);
  }
  const decoder_options& most = s.d->options;
  if (tokens > most.prompt_tokens || keys > most.prompt_keys) {
    throw error(errc::out_of_memory,
                fmt::format("decoder: prompts of {} tokens over {} keys; a prefill has up to {} "
                            "tokens and {} keys; take them in parts",
                            tokens, keys, most.prompt_tokens, most.prompt_keys));
  }
  s.pages.extend(growths);
  s.rows = static_cast<std::int64_t>(prompts.size());
  if (prompts.empty()) return;
  const layer_tokens staged = s.arrays.stage_prompts(s.pages, prompts, stream);
  // Planning allocates, which may wait for a kernel that waits for another rank's planning.
  if (s.d->config.attention_cap == 0 && s.d->plans_prompt_attention(staged)) s.d->job->barrier();
  const matrix normed = s.through_layers(staged, s.arrays.prompt_tokens(), stream);
  const matrix last = s.d->view(s.last, s.rows, s.d->config.hidden);
  s.d->backend->gather_rows(as_const(normed), s.arrays.last_rows(), last, stream);
  s.head.run(as_const(last), s.weights.head, stream);
  s.d->backend->finish(given);
}

void decoder::stage(std::span<const int> sequences, std::span<const std::int32_t> tokens,
                    stream_ref given) {
  state& s = *state_;
  const stream_ref stream = s.d->backend->begin(given);
  const auto count = static_cast<std::int64_t>(sequences.size());
  if (tokens.empty() ? count != s.rows : tokens.size() != sequences.size()) {
    throw error(
        errc::invalid_argument,
        fmt::format("decoder: {} sequences and {} tokens; without tokens there have to be as "
                    "many sequences as in the run before ({})",
                    count, tokens.size(), s.rows));
  }
  s.check_tokens(tokens);
  std::vector<page_allocator::growth> growths;
  for (const int sequence : sequences) growths.push_back({.sequence = sequence, .tokens = 1});
  s.pages.extend(growths);
  s.rows = count;
  if (!tokens.empty()) {
    s.d->backend->upload(s.head.next_tokens(), tokens.data(), tokens.size_bytes(), stream);
  }
  s.arrays.stage_step(s.pages, sequences, stream);
  s.d->backend->finish(given);
}

void decoder::step(stream_ref given) {
  state& s = *state_;
  if (s.rows == 0) return;
  const stream_ref stream = s.d->backend->begin(given);
  const auto launch = [&s](stream_ref on) {
    const matrix normed = s.through_layers(s.arrays.step_tokens(s.rows), s.head.next_tokens(), on);
    s.head.run(as_const(normed), s.weights.head, on);
  };
  if (s.d->options.graphs) {
    s.d->backend->replay(s.rows, stream, launch);
  } else {
    launch(stream);
  }
  s.d->backend->finish(given);
}

std::int64_t decoder::rows() const noexcept { return state_->rows; }
std::int32_t* decoder::next_tokens() const noexcept { return state_->head.next_tokens(); }
const float* decoder::logits() const noexcept { return state_->head.logits(); }

std::vector<std::int32_t> decoder::read_tokens(stream_ref stream) const {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows()));
  state_->d->backend->download(tokens.data(), next_tokens(), tokens.size() * sizeof(std::int32_t),
                               stream);
  return tokens;
}

std::vector<float> decoder::read_logits(stream_ref stream) const {
  if (logits() == nullptr) {
    throw error(errc::invalid_argument, "decoder: it keeps no logits; set the option");
  }
  std::vector<float> values(static_cast<std::size_t>(rows() * config().vocabulary));
  state_->d->backend->download(values.data(), logits(), values.size() * sizeof(float), stream);
  return values;
}

const decoder_config& decoder::config() const noexcept { return state_->d->config; }
const decoder_options& decoder::options() const noexcept { return state_->d->options; }
const decoder_weights& decoder::weights() const noexcept { return state_->weights; }

}  // namespace untax
