#pragma once

#include <chrono>
#include <string>

#include "descriptor.hpp"

namespace untax {

/// While it lives, no other process begins to listen in a directory, or removes it. Whoever holds
/// it does so for a few calls only: after `limit` it is taken for stopped, and not waited for.
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
