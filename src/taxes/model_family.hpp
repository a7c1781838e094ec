#pragma once

#include <string>
#include <vector>

#include "config_reader.hpp"

namespace untax {

/// Whether the MLP has a gate and an up projection, or an up projection alone. A known model_type
/// decides it. For another one the fields decide: if they are those of a decoder with attention and
/// an MLP, or with experts in a known layout, a note says so. If fields are missing, or some belong
/// to other layers, it throws `invalid_argument` with their names.
[[nodiscard]] bool has_gated_mlp(const config_reader& config, std::vector<std::string>& notes);

}  // namespace untax
