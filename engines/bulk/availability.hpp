#pragma once

#include <string>

namespace untax::bulk {

/// A library that is looked for when it is first used, so that nothing else depends on it.
struct availability {
  bool there = false;
  std::string text;  ///< "NCCL 2.28.9", or why it cannot be used
};

}  // namespace untax::bulk
