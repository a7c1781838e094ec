#pragma once

#include <string>

namespace untax {

/// The name of the current GPU: "NVIDIA H200".
[[nodiscard]] std::string device_name_here();

}  // namespace untax
