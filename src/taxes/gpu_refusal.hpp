#pragma once

#include <optional>
#include <string>

#include <untax/taxes/layer.hpp>

namespace untax {

/// Why an operation cannot run on so many GPUs; none if it can. Throws `invalid_argument` for an
/// unknown operator.
[[nodiscard]] std::optional<std::string> gpu_refusal(const layer_operation& op, int ranks);

/// Throws `unsupported` where ranks are to share a GPU: kernels of one then have the
/// multiprocessors that the others lack, and send through the same memory.
void refuse_shared_gpus();

}  // namespace untax
