#pragma once

#include <string>
#include <vector>

#include <untax/world/devices.hpp>

#include "terminal.hpp"

namespace untax::cli {

/// What one examination found.
struct diagnosis {
  std::string subject;
  mood verdict = mood::good;
  std::string text;
};

/// What was found out about the GPUs.
struct gpu_examination {
  std::vector<diagnosis> findings;
  std::string matrix;  ///< `peers_of` them
};

/// Which GPU does what with the memory of which other; empty if there is one.
[[nodiscard]] std::string peers_of(const device_survey& found, int columns, text_style how);

/// `heap_bytes` is what each rank will want for its symmetric heap.
[[nodiscard]] gpu_examination examine_gpus(std::size_t heap_bytes, int columns, text_style how);

}  // namespace untax::cli
