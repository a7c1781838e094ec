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

/// Throws `invalid_argument` that names the field if layers differ in a way that cannot be
/// measured: some of them are not attention (but a convolution, a state space, linear attention),
/// heads or widths change from layer to layer, or the layout of experts is unknown. `by_name` says
/// that the model_type is known; for an unknown one each field whose name suggests such layers is
/// refused.
void require_equal_layers(const config_reader& config, bool by_name);

}  // namespace untax
