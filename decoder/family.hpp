#pragma once

#include <cstdint>
#include <string_view>

#include <untax/decoder/config.hpp>

#include "src/core/config_reader.hpp"

namespace untax {

/// The way in which a family says which layers have a sliding window, if its file does not list
/// layer_types.
enum class window_rule : std::uint8_t {
  none,       ///< no layer, whatever sliding_window says
  every,      ///< each, if sliding_window is given
  upper,      ///< those from max_window_layers on, if use_sliding_window
  alternate,  ///< the first of each two
  pattern,    ///< all but the last of each sliding_window_pattern, which is 6 if not given
};

/// The properties of a family that its configurations do not say.
struct decoder_family {
  std::string_view type;  ///< the model_type
  window_rule windows = window_rule::none;
  bool qkv_bias = false;
  bool head_norms = false;
  bool post_norms = false;
  bool fused_weights = false;
  bool tied = false;  ///< where tie_word_embeddings is not given
  bool scaled_embedding = false;
  float norm_offset = 0;
  activation_function gate = activation_function::swiglu;
  std::int64_t kv_heads = 0;  ///< of files without num_key_value_heads; 0: as many as heads
  std::int64_t head_dim = 0;  ///< of files without head_dim; 0: hidden_size / heads
};

/// The family of a configuration. Throws `unsupported` for others.
[[nodiscard]] const decoder_family& family_of(const config_reader& config);

}  // namespace untax
