#pragma once

#include <string_view>

#include <untax/world/world.hpp>

namespace untax {

/// Throws `unsupported` for an operator in a world of GPUs, in a build without CUDA.
[[noreturn]] void refuse_without_cuda(const world& w, std::string_view name);

}  // namespace untax
