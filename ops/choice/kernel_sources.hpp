#pragma once

#include <string_view>

namespace untax {

/// A hash of the sources that determine how long GEMM operators take on GPUs, 16 hexadecimal
/// digits. A source that the build makes from them defines it (cmake/untax_kernel_sources.cmake).
[[nodiscard]] std::string_view kernel_sources() noexcept;

}  // namespace untax
