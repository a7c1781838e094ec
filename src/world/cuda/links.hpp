#pragma once

#include <string>
#include <vector>

#include <untax/world/devices.hpp>

namespace untax::gpu {

/// Facts from NVIDIA's management library, if it is installed.
struct management_facts {
  std::string driver;      ///< version of the driver; empty: not known
  std::vector<int> links;  ///< by device: NVLinks that are up; -1: not known
};

/// `buses` are the PCI addresses of the devices.
[[nodiscard]] management_facts ask_management(const std::vector<std::string>& buses);

/// Measures the rates and signal times between all GPUs, which have to reach each other. Throws
/// `untax::error`.
void measure_links(std::vector<std::vector<peer_facts>>& peers);

}  // namespace untax::gpu
