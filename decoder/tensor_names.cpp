#include "decoder/tensor_names.hpp"

#include <fmt/format.h>

namespace untax {

layer_names names_of_layer(const decoder_config& config, const std::string& prefix,
                           std::int64_t layer) {
  const std::string start = fmt::format("{}layers.{}.", prefix, layer);
  const std::string attention = start + "self_attn.";
  const std::string mlp = start + "mlp.";
  layer_names names;
  names.output = attention + "o_proj";
  names.down = mlp + "down_proj";
  if (config.fused_weights) {
    names.qkv = attention + "qkv_proj";
    names.gate_up = mlp + "gate_up_proj";
  } else {
    names.q = attention + "q_proj";
    names.k = attention + "k_proj";
    names.v = attention + "v_proj";
    names.gate = mlp + "gate_proj";
    names.up = mlp + "up_proj";
  }
  if (config.head_norms) {
    names.q_norm = attention + "q_norm";
    names.k_norm = attention + "k_norm";
  }
  names.input_norm = start + "input_layernorm";
  if (config.post_norms) {
    names.attention_post_norm = start + "post_attention_layernorm";
    names.mlp_norm = start + "pre_feedforward_layernorm";
    names.mlp_post_norm = start + "post_feedforward_layernorm";
  } else {
    names.mlp_norm = start + "post_attention_layernorm";
  }
  return names;
}

std::map<std::string, weight_source::shape> tensors_of(const decoder_config& config,
                                                       const std::string& prefix) {
  std::map<std::string, weight_source::shape> tensors;
  const auto weight = [&](const std::string& name, std::int64_t rows, std::int64_t cols) {
    if (!name.empty()) tensors[name + ".weight"] = {rows, cols};
  };
  const auto bias = [&](bool present, const std::string& name, std::int64_t cols) {
    if (present && !name.empty()) tensors[name + ".bias"] = {1, cols};
  };
  const std::int64_t hidden = config.hidden;
  const std::int64_t heads = config.heads * config.head_dim;
  const std::int64_t kv_heads = config.kv_heads * config.head_dim;
  weight(prefix + "embed_tokens", config.vocabulary, hidden);
  if (!config.tied_embedding) weight("lm_head", config.vocabulary, hidden);
  weight(prefix + "norm", 1, hidden);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const layer_names names = names_of_layer(config, prefix, i);
    const auto projection = [&](bool biased, const std::string& name, std::int64_t rows,
                                std::int64_t cols) {
      weight(name, rows, cols);
      bias(biased, name, rows);
    };
    projection(config.qkv_bias, names.q, heads, hidden);
    projection(config.qkv_bias, names.k, kv_heads, hidden);
    projection(config.qkv_bias, names.v, kv_heads, hidden);
    projection(config.qkv_bias, names.qkv, heads + 2 * kv_heads, hidden);
    projection(config.output_bias, names.output, hidden, heads);
    projection(config.mlp_bias, names.gate, config.intermediate, hidden);
    projection(config.mlp_bias, names.up, config.intermediate, hidden);
    projection(config.mlp_bias, names.gate_up, 2 * config.intermediate, hidden);
    projection(config.mlp_bias, names.down, hidden, config.intermediate);
    weight(names.q_norm, 1, config.head_dim);
    weight(names.k_norm, 1, config.head_dim);
    for (const std::string& norm :
         {names.input_norm, names.mlp_norm, names.attention_post_norm, names.mlp_post_norm}) {
      weight(norm, 1, hidden);
    }
  }
  return tensors;
}

}  // namespace untax
