#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/config_reader.hpp"

namespace untax {

/// The traits that follow from the model_type.
struct model_traits {
  bool by_name = false;  ///< whether the model_type is known, else its fields decide
  bool gated = true;     ///< the MLP has a gate and an up projection, or an up projection alone
  /// Heads of a file without num_attention_heads; 0: the file needs the field.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< num_key_value_heads of a file without it; 0: as many as heads
  std::int64_t head_dim = 0;  ///< head_dim of a file without it; 0: hidden_size / heads
};

/// Looks the model_type up. For an unknown model_type the fields decide: if they are those of a
/// decoder with attention and an MLP, or with experts in a known layout, a note says so. If fields
/// are missing, or some belong to other layers, it throws `invalid_argument` with their names.
[[nodiscard]] model_traits traits_of(const config_reader& config, std::vector<std::string>& notes);

}  // namespace untax
