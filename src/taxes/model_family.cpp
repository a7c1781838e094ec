#include "model_family.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace untax {
namespace {

// The model types whose layers untax knows: attention, and an MLP or experts, with the fields that
// are read here. The MLP has a gate and an up projection, or an up projection alone.
struct model_family {
  std::string_view type;
  bool gated = true;
  // Defaults of Hugging Face's class, for fields that published files leave out.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};
constexpr auto families = std::to_array<model_family>({
    {"llama"},
    {"mistral"},
    {"mixtral"},
    {"ministral"},
    {"qwen2"},
    {"qwen2_moe"},
    {"qwen2_vl_text"},
    {"qwen2_vl"},
    {"qwen2_5_vl_text"},
    {"qwen2_5_vl"},
    {"qwen3", true, 0, 0, 128},
    {"qwen3_moe"},
    {"qwen2_5_omni_text"},
    {"gemma", true, 16, 16, 256},
    {"gemma2", true, 8, 4, 256},
    {"gemma3_text", true, 8, 4, 256},
    {"phi", false},
    {"phi3"},
    {"phimoe"},
    {"deepseek_v2"},
    {"deepseek_v3"},
    {"kimi_k2"},
    {"gpt_oss"},
    {"gpt_neox", false},
    {"olmo"},
    {"olmo2"},
    {"olmoe"},
    {"granite"},
    {"stablelm"},
    {"glm"},
    {"glm4"},
    {"exaone4"},
    {"apertus", false},
    {"smollm3"},
    {"nemotron", false},
    {"starcoder2", false},
});

constexpr std::array required = {"hidden_size", "num_hidden_layers", "num_attention_heads"};
constexpr std::array experts = {"n_routed_experts", "num_local_experts", "num_experts"};

// Fields of layers, or of layouts of layers, that untax does not know. It must not take such a
// model for a plain decoder.
constexpr auto foreign = std::to_array<const char*>({
    "type_vocab_size",                 // encoders
    "relative_attention_num_buckets",  // encoders with decoders
    "state_size",
    "ssm_cfg",
    "ssm_state_size",
    "mamba_d_state",
    "time_step_rank",  // state spaces
    "linear_num_key_heads",
    "layers_block_type",
    "block_types",
    "hybrid_override_pattern",
    "attention_hidden_size",  // linear attention, and mixtures
    "moe_num_experts",
    "moe_layer_interval",
    "ffn_config",
    "num_experts_per_layer",
});

constexpr auto activations_without_gate = std::to_array<std::string_view>(
    {"gelu", "gelu_new", "gelu_fast", "quick_gelu", "relu", "relu2", "relu_squared", "xielu"});
constexpr auto activations_with_gate =
    std::to_array<std::string_view>({"silu", "swish", "swiglu", "geglu", "gelu_pytorch_tanh"});

std::vector<std::string_view> missing_fields(const config_reader& config) {
  std::vector<std::string_view> missing;
  for (const char* key : required) {
    if (!config.has(key)) missing.emplace_back(key);
  }
  const bool routed =
      config.has("moe_intermediate_size") &&
      std::ranges::any_of(experts, [&](const char* key) { return config.has(key); });
  if (!config.has("intermediate_size") && !routed) missing.emplace_back("intermediate_size");
  return missing;
}

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

bool gated_by_structure(const config_reader& config, const std::string& type,
                        std::vector<std::string>& notes) {
  const auto missing = missing_fields(config);
  if (!missing.empty()) {
    config.refuse_value("model_type",
                        fmt::format("untax does not know it by name, nor by structure: {} {} "
                                    "missing",
                                    listed(missing), missing.size() == 1 ? "is" : "are"));
  }
  const auto other =
      std::ranges::find_if(foreign, [&](const char* key) { return config.has(key); });
  if (other != foreign.end()) {
    config.refuse_value("model_type", fmt::format("untax does not know it by name, and its {} "
                                                  "belongs to layers that it does not know either",
                                                  *other));
  }
  std::string activation;
  for (const char* key : {"hidden_activation", "hidden_act", "activation_function", "activation"}) {
    if (!activation.empty() || !config.has(key)) continue;
    activation = config.text(key);
    if (!is_one_of(activation, activations_with_gate) &&
        !is_one_of(activation, activations_without_gate))
      config.refuse_value(key, fmt::format("untax does not know whether an MLP with it has a gate; "
                                           "it knows {} and {}",
                                           fmt::join(activations_with_gate, ", "),
                                           fmt::join(activations_without_gate, ", ")));
  }
  const bool gated = !is_one_of(activation, activations_without_gate);
  notes.push_back(fmt::format(
      "The model_type {} is not known by name. Its fields are those of a decoder with attention "
      "and {}, so this is measured; the MLP is taken to have {}, {}.",
      type,
      std::ranges::any_of(experts, [&](const char* key) { return config.has(key); }) ? "experts"
                                                                                     : "an MLP",
      gated ? "a gate" : "no gate",
      activation.empty() ? "as most have" : fmt::format("by the activation {}", activation)));
  return gated;
}

}  // namespace

model_traits traits_of(const config_reader& config, std::vector<std::string>& notes) {
  if (!config.has("model_type")) {
    notes.emplace_back("The file gives no model_type; layers as those of llama are assumed.");
    return {};
  }
  const std::string type = config.text("model_type");
  const auto family = std::ranges::find(families, std::string_view(type), &model_family::type);
  if (family == families.end()) return {.gated = gated_by_structure(config, type, notes)};
  return {true, family->gated, family->heads, family->kv_heads, family->head_dim};
}

}  // namespace untax
