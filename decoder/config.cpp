#include <untax/decoder/config.hpp>

#include <cmath>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

#include "decoder/config_fields.hpp"
#include "decoder/family.hpp"
#include "src/core/config_reader.hpp"
#include "src/core/text_file.hpp"

namespace untax {
namespace {

dtype element_type(const config_reader& config) {
  const std::string key = config.has("dtype") ? "dtype" : "torch_dtype";
  if (!config.has(key)) return dtype::bf16;
  const std::string name = config.text(key);
  if (name == "bfloat16") return dtype::bf16;
  if (name == "float16") return dtype::f16;
  if (name == "float32") return dtype::f32;
  config.refuse_value(key, "should be bfloat16, float16 or float32");
}

std::int64_t head_elements(const config_reader& config, const decoder_config& result) {
  if (const auto given = config.optional_size("head_dim", 256)) return *given;
  if (result.hidden % result.heads != 0) {
    config.refuse("head_dim", "is missing", "num_attention_heads does not divide hidden_size");
  }
  return result.hidden / result.heads;
}

void read_shape(const config_reader& config, const decoder_family& family, decoder_config& result) {
  constexpr std::int64_t widest = std::int64_t{1} << 20;
  result.type = element_type(config);
  result.hidden = config.size("hidden_size", widest);
  result.intermediate = config.size("intermediate_size", widest);
  result.layers = config.size("num_hidden_layers", 1 << 12);
  result.heads = config.size("num_attention_heads", 1 << 12);
  result.kv_heads = config.optional_size("num_key_value_heads", 1 << 12)
                        .value_or(family.kv_heads > 0 ? family.kv_heads : result.heads);
  if (result.heads % result.kv_heads != 0) {
    config.refuse_value("num_key_value_heads",
                        fmt::format("should divide num_attention_heads ({})", result.heads));
  }
  result.head_dim = !config.has("head_dim") && family.head_dim > 0 ? family.head_dim
                                                                   : head_elements(config, result);
  result.vocabulary = config.size("vocab_size", 1 << 24);
  result.positions = config.size("max_position_embeddings", std::int64_t{1} << 30);
  result.epsilon =
      static_cast<float>(config.optional_real("rms_norm_eps", 1e-12, 1).value_or(1e-6));
  result.tied_embedding =
      config.has("tie_word_embeddings") ? config.flag("tie_word_embeddings") : family.tied;
}

void read_activation(const config_reader& config, const decoder_family& family,
                     decoder_config& result) {
  result.gate = family.gate;
  const std::string key = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  if (!config.has(key)) return;
  const std::string name = config.text(key);
  if (name == "silu" || name == "swish") {
    result.gate = activation_function::swiglu;
  } else if (name == "gelu_pytorch_tanh") {
    result.gate = activation_function::geglu;
  } else {
    refuse_property(config, key, "the MLPs that untax runs have silu or gelu_pytorch_tanh");
  }
}

void read_biases(const config_reader& config, const decoder_family& family,
                 decoder_config& result) {
  const bool attention = config.flag("attention_bias");
  result.qkv_bias = family.qkv_bias || attention;
  result.output_bias = attention;
  result.mlp_bias = config.flag("mlp_bias");
}

void read_caps(const config_reader& config, const decoder_family& family, decoder_config& result) {
  result.attention_cap =
      static_cast<float>(config.optional_real("attn_logit_softcapping", 1e-3, 1e6).value_or(0));
  result.logit_cap =
      static_cast<float>(config.optional_real("final_logit_softcapping", 1e-3, 1e6).value_or(0));
  if (const auto scalar = config.optional_real("query_pre_attn_scalar", 1e-3, 1e9)) {
    result.attention_scale = static_cast<float>(1 / std::sqrt(*scalar));
  }
  if (family.scaled_embedding) {
    result.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(result.hidden)));
  }
}

/// Properties that change what a layer computes, and that no operator has.
void refuse_others(const config_reader& config) {
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    if (config.has(key)) refuse_property(config, key, "there are no mixtures of experts");
  }
  for (const char* key : {"quantization_config", "kv_lora_rank"}) {
    if (config.has(key)) refuse_property(config, key, "such weights have no operators");
  }
  if (config.flag("use_bidirectional_attention")) {
    refuse_property(config, "use_bidirectional_attention", "decoders have causal attention");
  }
}

}  // namespace

decoder_config parse_decoder_config(std::string_view text, const std::string& origin) {
  const config_reader config(text, origin);
  const decoder_family& family = family_of(config);
  refuse_others(config);
  decoder_config result;
  result.family = family.type;
  result.head_norms = family.head_norms;
  result.post_norms = family.post_norms;
  result.fused_weights = family.fused_weights;
  result.norm_offset = family.norm_offset;
  read_shape(config, family, result);
  read_activation(config, family, result);
  read_biases(config, family, result);
  read_caps(config, family, result);
  read_windows(config, family, result);
  read_rotations(config, result);
  return result;
}

decoder_config load_decoder_config(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    return load_decoder_config(file / "config.json");
  }
  // A real config.json has a few kilobytes.
  constexpr std::size_t most = std::size_t{1} << 24;
  return parse_decoder_config(text_of_file(file.string(), {.bytes = most}), file.string());
}

}  // namespace untax
