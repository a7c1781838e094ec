#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <untax/decoder/config.hpp>

#include "decoder/weight_source.hpp"

namespace untax {

/// The names of a layer's tensors, as transformers has them. A name is empty where the family has
/// no such tensor. Weights have ".weight" at their end, biases ".bias".
struct layer_names {
  std::string q, k, v, qkv;  ///< the last alone if files have it fused
  std::string output, gate, up, gate_up, down;
  std::string q_norm, k_norm, input_norm, mlp_norm, attention_post_norm, mlp_post_norm;
};

/// Names of layer `layer`. `prefix` stands before all of them, such as "model.".
[[nodiscard]] layer_names names_of_layer(const decoder_config& config, const std::string& prefix,
                                         std::int64_t layer);

/// All tensors that a model of this configuration has, with their shapes.
[[nodiscard]] std::map<std::string, weight_source::shape> tensors_of(const decoder_config& config,
                                                                     const std::string& prefix);

}  // namespace untax
