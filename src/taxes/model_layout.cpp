#include "model_family.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace untax {
namespace {

constexpr const char* only_attention =
    "untax measures models all of whose layers are attention with equal sizes";

constexpr auto attention_layers = std::to_array<std::string_view>(
    {"full_attention", "sliding_attention", "chunked_attention", "attention"});

/// Fields that describe single layers, or layers without attention. They count wherever they are
/// set.
constexpr auto layouts = std::to_array<const char*>({
    "linear_attn_config",
    "block_configs",
    "num_attention_heads_per_layer",
    "num_key_value_heads_per_layer",
    "head_dim_per_layer",
    "ffn_multipliers",
    "attention_other_setting",
    "full_attn_idxs",
});

/// Sizes of a second kind of layers, beside those of the first.
struct size_pair {
  const char* other;
  const char* usual;
};
constexpr auto second_sizes = std::to_array<size_pair>({
    {"global_head_dim", "head_dim"},
    {"num_global_key_value_heads", "num_key_value_heads"},
    {"swa_head_dim", "head_dim"},
    {"swa_num_attention_heads", "num_attention_heads"},
    {"swa_num_key_value_heads", "num_key_value_heads"},
});

/// Parts of the names of fields of layers that are not attention.
constexpr auto foreign_parts =
    std::to_array<std::string_view>({"linear_attn", "linear_attention", "lightning", "mamba",
                                     "ssm_", "conv_", "rwkv", "retention", "delta_net", "hybrid"});

void require_attention(const config_reader& config) {
  if (config.has("layer_types")) {
    for (const std::string& type : config.texts("layer_types")) {
      if (std::ranges::find(attention_layers, type) != attention_layers.end()) continue;
      config.refuse("layer_types", fmt::format("holds {}", shown(nlohmann::json(type))),
                    only_attention);
    }
  }
  if (config.has("attn_type_list") && !config.list_contains_only("attn_type_list", 1))
    config.refuse("attn_type_list", "does not hold 1, softmax attention, alone", only_attention);
}

void require_one_size(const config_reader& config) {
  constexpr std::int64_t most = std::int64_t{1} << 32;
  for (const auto& [other, usual] : second_sizes) {
    const auto value = config.optional_size(other, most);
    if (!value || value == config.optional_size(usual, most)) continue;
    config.refuse(other,
                  fmt::format("is {}, and {} {}", *value, usual,
                              config.has(usual) ? fmt::to_string(*config.optional_size(usual, most))
                                                : "is missing"),
                  only_attention);
  }
  constexpr const char* shared = "num_kv_shared_layers";
  if (config.has(shared) && config.count(shared, most) > 0)
    config.refuse_value(shared, only_attention);
  const bool latent = config.has("kv_lora_rank");
  if (!latent && config.has("v_head_dim") && config.has("head_dim") &&
      config.size("v_head_dim", most) != config.size("head_dim", most)) {
    config.refuse_value("v_head_dim", "should be head_dim where there is no kv_lora_rank");
  }
}

}  // namespace

void require_equal_layers(const config_reader& config, bool by_name) {
  for (const char* key : layouts) {
    if (config.has(key)) config.refuse(key, "describes layers one by one", only_attention);
  }
  require_attention(config);
  require_one_size(config);
  if (config.has("interleave_moe_layer_step")) {
    config.refuse("interleave_moe_layer_step", "belongs to a layout of experts that is not known",
                  "untax knows the layouts of Mixtral, gpt-oss, DeepSeek and Qwen MoE");
  }
  if (by_name) return;
  for (const std::string& key : config.keys()) {
    const bool foreign = std::ranges::any_of(
        foreign_parts, [&](std::string_view part) { return key.find(part) != std::string::npos; });
    if (foreign && config.has(key))
      config.refuse(key, "tells of layers without attention", only_attention);
  }
}

}  // namespace untax
