#pragma once

#include <string>

namespace untax {

/// What the current GPU is called: "NVIDIA H200".
[[nodiscard]] std::string device_name_here();

}  // namespace untax
