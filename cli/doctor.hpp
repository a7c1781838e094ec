#pragma once

#include <string>
#include <vector>

#include <untax/world/devices.hpp>

#include "terminal.hpp"

namespace untax::cli {

/// The result of one check.
struct diagnosis {
  std::string subject;
  mood verdict = mood::good;
  std::string text;
};

/// The results of the checks of GPUs.
struct gpu_examination {
  std::vector<diagnosis> findings;
  std::string matrix;  ///< `peers_of` the devices
};

/// A matrix of access, rates and signal times between GPUs; empty for a single GPU.
[[nodiscard]] std::string peers_of(const device_survey& survey, int columns, text_style how);

/// Checks the GPUs. `heap_bytes` is the size of each rank's symmetric heap.
[[nodiscard]] gpu_examination examine_gpus(std::size_t heap_bytes, int columns, text_style how);

}  // namespace untax::cli
