#pragma once

#include <string>
#include <string_view>

// The kernels and the GPU that tables of measurements name.

namespace untax {

/// A hash of the sources that determine how long GEMM operators take on GPUs, 16 hexadecimal
/// digits. A source that the build makes from them defines it (cmake/untax_kernel_sources.cmake).
[[nodiscard]] std::string_view kernel_sources() noexcept;

/// The name of the current GPU: "NVIDIA H200".
[[nodiscard]] std::string device_name_here();

}  // namespace untax
