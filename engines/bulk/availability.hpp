#pragma once

#include <string>

namespace untax::bulk {

/// Whether a library can be used. It is loaded on first use, so that other code does not depend on
/// it.
struct availability {
  bool there = false;
  std::string text;  ///< "NCCL 2.28.9", or why it cannot be used
};

}  // namespace untax::bulk
