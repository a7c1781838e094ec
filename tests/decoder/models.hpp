#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <untax/decoder/config.hpp>

namespace untax_test {

/// A config.json of a model that is small enough for a reference, in fp32; `more` adds fields or
/// replaces them.
inline nlohmann::json small_model(const std::string& family,
                                  const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json fields = {{"model_type", family},     {"torch_dtype", "float32"},
                           {"hidden_size", 48},        {"intermediate_size", 72},
                           {"num_hidden_layers", 2},   {"num_attention_heads", 8},
                           {"num_key_value_heads", 4}, {"head_dim", 8},
                           {"vocab_size", 101},        {"max_position_embeddings", 128},
                           {"rms_norm_eps", 1e-5},     {"rope_theta", 10000.0}};
  fields.update(more);
  return fields;
}

inline untax::decoder_config parsed(const nlohmann::json& fields) {
  return untax::parse_decoder_config(fields.dump(), "config.json");
}

}  // namespace untax_test
