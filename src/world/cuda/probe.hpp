#pragma once

#include <vector>

#include <untax/world/devices.hpp>

namespace untax::gpu {

/// Measures the rates and signal times between all GPUs, which have to reach each other. Throws
/// `untax::error`.
void measure_links(std::vector<std::vector<peer_facts>>& peers);

}  // namespace untax::gpu
