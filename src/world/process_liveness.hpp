#pragma once

#include <vector>

#include <untax/flow/liveness.hpp>

#include "descriptor.hpp"

namespace untax {

/// Watches the processes of the ranks through process descriptors, which cannot be confused by a
/// process id that is used again. Where the kernel has none, it asks for the process id.
class process_liveness final : public liveness {
 public:
  /// `processes` by rank; 0 for one that cannot be seen, which then counts as alive.
  explicit process_liveness(const std::vector<int>& processes);

  [[nodiscard]] bool alive(int rank) const noexcept override;
  [[nodiscard]] bool halted(int rank) const noexcept override;

 private:
  struct watched {
    int process = 0;
    descriptor handle;
    bool lost = false;  // it had ended before it could be watched
  };
  std::vector<watched> ranks_;
};

}  // namespace untax
