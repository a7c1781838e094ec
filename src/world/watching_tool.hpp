#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace untax {

/// The tool that watches the kernels of this process and lets only one kernel run at a time, if
/// there is one. `maps` is the text of /proc/self/maps; `injected` is the value of
/// CUDA_INJECTION64_PATH, the library that CUDA loads.
[[nodiscard]] std::optional<std::string> watching_tool(std::string_view maps,
                                                       std::string_view injected);
[[nodiscard]] std::optional<std::string> watching_tool();

/// Throws `unsupported` if ranks share GPUs under such a tool: their kernels wait for each other.
void require_kernels_side_by_side(int ranks_per_gpu, const std::optional<std::string>& tool);

}  // namespace untax
