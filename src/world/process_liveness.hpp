#pragma once

#include <vector>

#include <untax/flow/liveness.hpp>

#include "descriptor.hpp"

namespace untax {

/// Watches the processes of the ranks by process descriptors, which stay valid even if a process id
/// is reused. If the kernel has no such descriptors, it checks the process id.
class process_liveness final : public liveness {
 public:
  /// `processes` are by rank; 0 is a process that cannot be seen, and counts as alive.
  explicit process_liveness(const std::vector<int>& processes);

  [[nodiscard]] bool alive(int rank) const noexcept override;
  [[nodiscard]] bool halted(int rank) const noexcept override;

 private:
  struct watched {
    int process = 0;
    descriptor handle;
    bool lost = false;  // the process had ended before this object was made
  };
  std::vector<watched> ranks_;
};

}  // namespace untax
