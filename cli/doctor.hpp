#pragma once

#include <string>
#include <vector>

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
  std::string
      matrix;  ///< which GPU does what with the memory of which other; empty if there is one
};

/// `heap_bytes` is what each rank will want for its symmetric heap.
[[nodiscard]] gpu_examination examine_gpus(std::size_t heap_bytes, int columns, text_style how);

}  // namespace untax::cli
