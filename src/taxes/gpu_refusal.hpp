#pragma once

#include <optional>
#include <string>

#include <untax/taxes/layer.hpp>

namespace untax {

/// The reason why an operation cannot run on `ranks` GPUs; nothing if it can. Throws
/// `invalid_argument` for an unknown operator.
[[nodiscard]] std::optional<std::string> gpu_refusal(const layer_operation& op, int ranks);

/// Throws `unsupported` if the environment makes ranks share a GPU: their kernels would compete for
/// multiprocessors, and no transfer would cross a link.
void refuse_shared_gpus();

}  // namespace untax
