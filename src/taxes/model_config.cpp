#include <untax/taxes/model_config.hpp>

#include <array>
#include <system_error>

#include <fmt/format.h>

#include "model_family.hpp"
#include "src/core/config_reader.hpp"
#include "src/core/text_file.hpp"

namespace untax {
namespace {

// Limits far beyond any model, and small enough that no product of two of them overflows.
constexpr std::int64_t widest = std::int64_t{1} << 22;
constexpr std::int64_t most_heads = 1 << 14;
constexpr std::int64_t widest_head = 1 << 14;
constexpr std::int64_t most_layers = 1 << 14;
constexpr std::int64_t most_experts = 1 << 16;

dtype element_type(const config_reader& config, std::vector<std::string>& notes) {
  const std::string key = config.has("dtype") ? "dtype" : "torch_dtype";
  if (!config.has(key)) {
    notes.emplace_back("The file gives no dtype; bf16 is assumed.");
    return dtype::bf16;
  }
  const std::string name = config.text(key);
  if (name == "bfloat16") return dtype::bf16;
  if (name == "float16") return dtype::f16;
  if (name == "float32") return dtype::f32;
  config.refuse_value(key, "should be bfloat16, float16 or float32");
}

std::int64_t attention_head_dim(const config_reader& config, const model_config& model,
                                const model_traits& traits) {
  if (const auto given = config.optional_size("head_dim", widest_head)) return *given;
  if (traits.head_dim > 0) return traits.head_dim;
  if (model.hidden % model.heads != 0) {
    config.refuse(
        "hidden_size",
        fmt::format("is {}, which {} attention heads do not divide", model.hidden, model.heads),
        "give head_dim, or make hidden_size a multiple of num_attention_heads");
  }
  return model.hidden / model.heads;
}

std::optional<latent_attention> latent_fields(const config_reader& config) {
  if (!config.has("kv_lora_rank")) return std::nullopt;
  latent_attention latent;
  latent.kv_rank = config.size("kv_lora_rank", widest);
  latent.q_rank = config.optional_size("q_lora_rank", widest).value_or(0);
  // If q has a latent vector, no rank computes heads of q from the hidden state.
  latent.qk_nope_head = latent.q_rank > 0
                            ? config.optional_size("qk_nope_head_dim", widest_head).value_or(0)
                            : config.size("qk_nope_head_dim", widest_head);
  latent.qk_rope_head = config.size("qk_rope_head_dim", widest_head);
  latent.v_head = config.size("v_head_dim", widest_head);
  return latent;
}

// The number of layers with experts. The families specify it in different ways: the first layers
// are dense (DeepSeek), every n-th layer has experts (Qwen MoE), or all have (Mixtral, gpt-oss).
std::int64_t moe_layers(const config_reader& config, std::int64_t layers) {
  if (config.has("first_k_dense_replace")) {
    const std::int64_t dense = config.count("first_k_dense_replace", layers);
    const std::int64_t every = config.optional_size("moe_layer_freq", layers).value_or(1);
    std::int64_t value = 0;
    for (std::int64_t i = dense; i < layers; ++i) value += i % every == 0 ? 1 : 0;
    return value;
  }
  const std::int64_t every = config.optional_size("decoder_sparse_step", layers).value_or(1);
  std::int64_t value = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    value += (i + 1) % every == 0 && !config.list_contains("mlp_only_layers", i) ? 1 : 0;
  }
  return value;
}

std::optional<expert_config> expert_fields(const config_reader& config, const model_config& model) {
  static constexpr std::array<const char*, 3> names = {"n_routed_experts", "num_local_experts",
                                                       "num_experts"};
  const char* key = nullptr;
  for (const char* name : names) {
    if (key == nullptr && config.has(name)) key = name;
  }
  if (key == nullptr || config.count(key, most_experts) <= 1) return std::nullopt;
  expert_config moe;
  moe.experts = config.size(key, most_experts);
  moe.experts_per_token = config.optional_size("num_experts_per_tok", moe.experts).value_or(0);
  moe.intermediate =
      config.optional_size("moe_intermediate_size", widest).value_or(model.intermediate);
  if (config.has("n_shared_experts")) {
    if (moe.intermediate == 0) moe.intermediate = config.size("moe_intermediate_size", widest);
    moe.shared_intermediate = config.count("n_shared_experts", 1 << 10) * moe.intermediate;
  } else if (config.has("shared_expert_intermediate_size")) {
    moe.shared_intermediate = config.count("shared_expert_intermediate_size", widest);
  }
  moe.layers = moe_layers(config, model.layers);
  if (moe.layers == 0) return std::nullopt;
  return moe;
}

std::string model_name(const std::filesystem::path& file) {
  if (file.stem() != "config") return file.stem().string();
  const auto parent = std::filesystem::absolute(file).lexically_normal().parent_path().filename();
  return parent.empty() ? "config" : parent.string();
}

/// The number of key/value heads, under the name that each family has for it.
std::int64_t key_value_heads(const config_reader& config, const model_config& model,
                             const model_traits& traits) {
  const auto named = [&](const char* key) { return config.optional_size(key, most_heads); };
  if (const auto given = named("num_key_value_heads")) return *given;
  const bool newer = config.flag("new_decoder_architecture");  // Falcon's field, with num_kv_heads
  if (config.flag("multi_query") && !newer) return 1;
  if (const auto given = named("num_kv_heads")) return *given;
  if (config.flag("multi_query_attention")) {
    if (const auto given = named("multi_query_group_num")) return *given;
  }
  return traits.kv_heads > 0 ? traits.kv_heads : model.heads;
}

/// The value of a field that published files of a family leave to its default.
std::int64_t size_or_default(const config_reader& config, const char* key, std::int64_t most,
                             std::int64_t usual, model_config& model) {
  if (config.has(key) || usual == 0) return config.size(key, most);
  model.notes.push_back(fmt::format("The file gives no {}; {} is taken, the default of {}.", key,
                                    usual, model.model_type));
  return usual;
}

}  // namespace

model_config parse_model(std::string_view text, const std::filesystem::path& origin) {
  const config_reader config(text, origin.string());
  model_config model;
  model.name = model_name(origin);
  model.architecture = config.first_of("architectures");
  const model_traits traits = traits_of(config, model.notes);
  model.gated_mlp = traits.gated;
  model.model_type = config.has("model_type") ? config.text("model_type") : "";
  require_equal_layers(config, traits.by_name);
  model.type = element_type(config, model.notes);
  model.hidden = config.size("hidden_size", widest);
  model.layers = config.size("num_hidden_layers", most_layers);
  model.heads = size_or_default(config, "num_attention_heads", most_heads, traits.heads, model);
  model.kv_heads = key_value_heads(config, model, traits);
  if (model.heads % model.kv_heads != 0) {
    config.refuse("num_key_value_heads", fmt::format("is {}", model.kv_heads),
                  fmt::format("should divide num_attention_heads ({})", model.heads));
  }
  model.intermediate = config.optional_size("intermediate_size", widest).value_or(0);
  model.vocab = config.optional_size("vocab_size", 1 << 26).value_or(0);
  model.latent = latent_fields(config);
  model.head_dim = model.latent ? model.latent->qk_nope_head + model.latent->qk_rope_head
                                : attention_head_dim(config, model, traits);
  model.moe = expert_fields(config, model);
  // If all layers have experts, there may be no other MLP.
  if (model.dense_layers() > 0) model.intermediate = config.size("intermediate_size", widest);
  if (config.has("quantization_config")) {
    model.notes.push_back(fmt::format(
        "The weights of this model are stored quantised; {} is measured.", name_of(model.type)));
  }
  return model;
}

model_config load_model(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    const auto inside = file / "config.json";
    if (std::filesystem::is_regular_file(inside, ignored)) return load_model(inside);
    throw error(errc::invalid_argument,
                fmt::format("{}: is a folder without a config.json; give that of a Hugging Face "
                            "model, or its folder",
                            file.string()));
  }
  // A real config.json has a few kilobytes.
  constexpr std::size_t most = std::size_t{1} << 24;
  std::string text;
  try {
    text = text_of_file(file.string(), {.bytes = most});
  } catch (const error& wrong) {
    throw error(wrong.code(), fmt::format("{}; {}", wrong.what(), config_reader::advice));
  }
  return parse_model(text, file);
}

}  // namespace untax
