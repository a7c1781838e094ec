#pragma once

#include <chrono>
#include <string>

#include "descriptor.hpp"

namespace untax {

/// A lock: while it exists, no other process begins to listen in a directory, or removes it.
/// Processes hold it for a few calls only. After `limit` the holder counts as stopped, and is
/// ignored.
class directory_lock {
 public:
  explicit directory_lock(const std::string& directory,
                          std::chrono::milliseconds limit = std::chrono::seconds(10)) noexcept;

  /// False if there is no such directory.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(directory_); }

 private:
  descriptor directory_;
};

}  // namespace untax
