#pragma once

#include <optional>
#include <string>

#include <untax/taxes/layer.hpp>

namespace untax {

/// Why an operation cannot run on so many GPUs; none if it can. Throws `invalid_argument` for an
/// unknown operator.
[[nodiscard]] std::optional<std::string> gpu_refusal(const layer_operation& op, int ranks);

}  // namespace untax
