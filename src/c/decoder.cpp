#include <untax/c/decoder.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/decoder/decoder.hpp>

#include "failure.hpp"
#include "given.hpp"
#include "handles.hpp"
#include "reading.hpp"

/// The object behind a decoder handle.
struct untax_decoder {
  untax_decoder(untax_world& w, untax::decoder d)
      : owner(&w), number(w.ranks.next_object()), model(std::move(d)) {
    ++owner->operators;
  }
  untax_decoder(const untax_decoder&) = delete;
  untax_decoder& operator=(const untax_decoder&) = delete;
  ~untax_decoder() {
    if (!dropped) --owner->operators;
  }

  untax_world* owner;
  std::uint64_t number;  ///< among the objects of all ranks
  untax::decoder model;
  bool dropped = false;
};

namespace untax::c {
namespace {

/// `count` elements. Throws `invalid_argument` if `count` is negative, or if the pointer is null.
template <class T>
std::span<const T> elements(std::string_view name, const T* data, std::int64_t count) {
  if (count < 0) throw error(errc::invalid_argument, fmt::format("{} of {}", count, name));
  if (count > 0) require(data, name);
  return {data, static_cast<std::size_t>(count)};
}

void expect_count(std::string_view name, std::int64_t count, std::int64_t right) {
  if (count == right) return;
  throw error(errc::invalid_argument,
              fmt::format("count of {} is {}; there are {}", name, count, right));
}

/// Calls `body` with the decoder while no other thread is in a call of its world.
template <class Body>
std::int32_t with(const untax_decoder* decoder, const Body& body) noexcept {
  const untax_world* owner = decoder == nullptr ? nullptr : decoder->owner;
  return guarded(owner, [&] {
    require(decoder, "decoder");
    const one_thread only(*decoder->owner);
    body();
  });
}

template <class Make>
std::int32_t make(untax_world* world, untax_decoder** decoder, const Make& model) noexcept {
  return guarded(world, [&] {
    require(world, "world");
    require(decoder, "decoder");
    const one_thread only(*world);
    *decoder = std::make_unique<untax_decoder>(*world, model()).release();
  });
}

decoder_layer_weights layer_of(const untax_decoder_layer& l) {
  return {.qkv = matrix_of("qkv", l.qkv),
          .output = matrix_of("output", l.output),
          .gate_up = matrix_of("gate_up", l.gate_up),
          .down = matrix_of("down", l.down),
          .qkv_bias = l.qkv_bias,
          .output_bias = l.output_bias,
          .gate_up_bias = l.gate_up_bias,
          .down_bias = l.down_bias,
          .q_norm = l.q_norm,
          .k_norm = l.k_norm,
          .input_norm = l.input_norm,
          .mlp_norm = l.mlp_norm,
          .attention_post_norm = l.attention_post_norm,
          .mlp_post_norm = l.mlp_post_norm};
}

decoder_weights weights_of(const untax_decoder_weights* given) {
  require(given, "weights");
  const auto w = taken(given, "untax_decoder_weights");
  decoder_weights weights{.embedding = matrix_of("embedding", w.embedding),
                          .head = matrix_of("head", w.head),
                          .final_norm = w.final_norm,
                          .layers = {}};
  const auto given_layers = elements("layers", w.layers, w.count);
  // The layers of an older or newer caller have another size.
  const auto* at = reinterpret_cast<const std::byte*>(given_layers.data());
  for (std::size_t i = 0; i < given_layers.size(); ++i, at += given_layers.front().size) {
    weights.layers.push_back(
        layer_of(taken(reinterpret_cast<const untax_decoder_layer*>(at), "untax_decoder_layer")));
  }
  return weights;
}

}  // namespace
}  // namespace untax::c

using untax::c::guarded;
using untax::c::require;
using untax::c::stream_of;
using untax::c::with;

int32_t untax_decoder_load(untax_world* world, const char* folder,
                           const untax_decoder_options* options, untax_decoder** decoder) {
  return untax::c::make(world, decoder, [&] {
    require(folder, "folder");
    const auto config = untax::load_decoder_config(folder);
    return untax::decoder::load(world->ranks, folder, config, untax::c::options_of(options));
  });
}

int32_t untax_decoder_random(untax_world* world, const char* config, uint64_t seed,
                             const untax_decoder_options* options, untax_decoder** decoder) {
  return untax::c::make(world, decoder, [&] {
    require(config, "config");
    const auto read = untax::load_decoder_config(config);
    return untax::decoder::random(world->ranks, read, seed, untax::c::options_of(options));
  });
}

int32_t untax_decoder_create(untax_world* world, const char* config,
                             const untax_decoder_weights* weights,
                             const untax_decoder_options* options, untax_decoder** decoder) {
  return untax::c::make(world, decoder, [&] {
    require(config, "config");
    return untax::decoder(world->ranks, untax::parse_decoder_config(config, "config"),
                          untax::c::weights_of(weights), untax::c::options_of(options));
  });
}

int32_t untax_decoder_destroy(untax_decoder* decoder) {
  if (decoder == nullptr) return untax_ok;
  return guarded(decoder->owner, [&] { delete decoder; });
}

int32_t untax_decoder_drop(untax_decoder* decoder) {
  if (decoder == nullptr) return untax_ok;
  return guarded(decoder->owner, [&] {
    untax_world& owner = *decoder->owner;
    const std::uint64_t number = decoder->number;
    std::shared_ptr<untax_decoder> dropped(decoder);
    decoder->dropped = true;
    --owner.operators;
    owner.ranks.drop(number, std::move(dropped));
  });
}

int32_t untax_decoder_add(untax_decoder* decoder, int32_t* sequence) {
  return with(decoder, [&] {
    require(sequence, "sequence");
    *sequence = decoder->model.add();
  });
}

int32_t untax_decoder_fork(untax_decoder* decoder, int32_t sequence, void* stream, int32_t* copy) {
  return with(decoder, [&] {
    require(copy, "copy");
    *copy = decoder->model.fork(sequence, stream_of(stream));
  });
}

int32_t untax_decoder_remove(untax_decoder* decoder, int32_t sequence) {
  return with(decoder, [&] { decoder->model.remove(sequence); });
}

int32_t untax_decoder_length(const untax_decoder* decoder, int32_t sequence, int64_t* length) {
  return with(decoder, [&] {
    require(length, "length");
    *length = decoder->model.length(sequence);
  });
}

int32_t untax_decoder_prefill(untax_decoder* decoder, const int32_t* sequences,
                              const int64_t* counts, int32_t count, const int32_t* tokens,
                              void* stream) {
  return with(decoder, [&] {
    const auto numbers = untax::c::elements("sequences", sequences, count);
    const auto lengths = untax::c::elements("counts", counts, count);
    std::vector<untax::decoder::prompt> prompts;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      prompts.push_back({numbers[i], untax::c::elements("tokens", tokens, lengths[i])});
      tokens += lengths[i];
    }
    decoder->model.prefill(prompts, stream_of(stream));
  });
}

int32_t untax_decoder_stage(untax_decoder* decoder, const int32_t* sequences, int32_t count,
                            const int32_t* tokens, void* stream) {
  return with(decoder, [&] {
    const auto numbers = untax::c::elements("sequences", sequences, count);
    decoder->model.stage(numbers, {tokens, tokens == nullptr ? 0 : numbers.size()},
                         stream_of(stream));
  });
}

int32_t untax_decoder_step(untax_decoder* decoder, void* stream) {
  return with(decoder, [&] { decoder->model.step(stream_of(stream)); });
}

int32_t untax_decoder_shape(const untax_decoder* decoder, int64_t* rows, int64_t* vocabulary) {
  return with(decoder, [&] {
    if (rows != nullptr) *rows = decoder->model.rows();
    if (vocabulary != nullptr) *vocabulary = decoder->model.config().vocabulary;
  });
}

int32_t untax_decoder_results(const untax_decoder* decoder, int32_t** tokens,
                              const float** logits) {
  return with(decoder, [&] {
    if (tokens != nullptr) *tokens = decoder->model.next_tokens();
    if (logits != nullptr) *logits = decoder->model.logits();
  });
}

int32_t untax_decoder_read_tokens(const untax_decoder* decoder, int32_t* tokens, int64_t count,
                                  void* stream) {
  return with(decoder, [&] {
    require(tokens, "tokens");
    untax::c::expect_count("tokens", count, decoder->model.rows());
    std::ranges::copy(decoder->model.read_tokens(stream_of(stream)), tokens);
  });
}

int32_t untax_decoder_read_logits(const untax_decoder* decoder, float* logits, int64_t count,
                                  void* stream) {
  return with(decoder, [&] {
    require(logits, "logits");
    untax::c::expect_count("logits", count,
                           decoder->model.rows() * decoder->model.config().vocabulary);
    std::ranges::copy(decoder->model.read_logits(stream_of(stream)), logits);
  });
}
