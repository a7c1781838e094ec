#pragma once

#include <string>
#include <vector>

#include "config_reader.hpp"

namespace untax {

/// Whether the MLP has a gate and an up projection, or an up projection alone. A model_type that is
/// known by name says it. Another one is looked at by its fields: if they are those of a decoder
/// with attention and an MLP, or experts in a layout that is known, a note says so; if fields are
/// missing, or some belong to other layers, it is refused in one line that names them.
[[nodiscard]] bool has_gated_mlp(const config_reader& config, std::vector<std::string>& notes);

}  // namespace untax
