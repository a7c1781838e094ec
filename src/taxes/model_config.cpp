#include <untax/taxes/model_config.hpp>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "config_reader.hpp"
#include "model_family.hpp"

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

std::int64_t attention_head_dim(const config_reader& config, const model_config& model) {
  if (const auto given = config.optional_size("head_dim", widest_head)) return *given;
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
    std::int64_t found = 0;
    for (std::int64_t i = dense; i < layers; ++i) found += i % every == 0 ? 1 : 0;
    return found;
  }
  const std::int64_t every = config.optional_size("decoder_sparse_step", layers).value_or(1);
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    found += (i + 1) % every == 0 && !config.list_contains("mlp_only_layers", i) ? 1 : 0;
  }
  return found;
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

void refuse_unknown_layouts(const config_reader& config) {
  if (!config.has("interleave_moe_layer_step")) return;
  config.refuse("interleave_moe_layer_step", "belongs to a layout of experts that is not known",
                "untax knows the layouts of Mixtral, gpt-oss, DeepSeek and Qwen MoE");
}

}  // namespace

model_config parse_model(std::string_view text, const std::filesystem::path& origin) {
  const config_reader config(text, origin.string());
  model_config model;
  model.name = model_name(origin);
  model.architecture = config.first_of("architectures");
  model.gated_mlp = has_gated_mlp(config, model.notes);
  model.model_type = config.has("model_type") ? config.text("model_type") : "";
  refuse_unknown_layouts(config);
  model.type = element_type(config, model.notes);
  model.hidden = config.size("hidden_size", widest);
  model.layers = config.size("num_hidden_layers", most_layers);
  model.heads = config.size("num_attention_heads", most_heads);
  model.kv_heads = config.optional_size("num_key_value_heads", most_heads).value_or(model.heads);
  if (model.heads % model.kv_heads != 0) {
    config.refuse("num_key_value_heads", fmt::format("is {}", model.kv_heads),
                  fmt::format("should divide num_attention_heads ({})", model.heads));
  }
  model.intermediate = config.optional_size("intermediate_size", widest).value_or(0);
  model.vocab = config.optional_size("vocab_size", 1 << 26).value_or(0);
  model.latent = latent_fields(config);
  model.head_dim = model.latent ? model.latent->qk_nope_head + model.latent->qk_rope_head
                                : attention_head_dim(config, model);
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
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw error(errc::invalid_argument,
                fmt::format("{}: cannot be read ({}); give the config.json of a Hugging Face model",
                            file.string(), std::generic_category().message(errno)));
  }
  // A real config.json has a few kilobytes; the limit keeps a wrong path (weights, a device) from
  // filling memory.
  constexpr std::streamsize most = std::streamsize{1} << 24;
  std::string text(static_cast<std::size_t>(most), '\0');
  stream.read(text.data(), most);
  if (stream.gcount() == most) {
    throw error(
        errc::invalid_argument,
        fmt::format(
            "{}: is longer than any config.json; give the config.json of a Hugging Face model",
            file.string()));
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_model(text, file);
}

}  // namespace untax
