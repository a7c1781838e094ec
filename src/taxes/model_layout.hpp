#pragma once

#include "src/core/config_reader.hpp"

namespace untax {

/// Throws `invalid_argument` that names the field if layers differ in a way that is not measured:
/// some of them are not attention (but a convolution, a state space, linear attention), heads or
/// widths change from layer to layer, or the layout of experts is unknown. `by_name` says that the
/// model_type is known; for an unknown one each field whose name tells of such layers is refused.
void require_equal_layers(const config_reader& config, bool by_name);

}  // namespace untax
