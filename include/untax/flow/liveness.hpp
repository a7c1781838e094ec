#pragma once

namespace untax {

/// Tells whether a peer is dead or only slow. It is called from any thread, every few milliseconds
/// during a wait.
class liveness {
 public:
  liveness() = default;
  liveness(const liveness&) = delete;
  liveness& operator=(const liveness&) = delete;
  virtual ~liveness() = default;

  /// Whether `rank` may still act. Once false, it stays false.
  [[nodiscard]] virtual bool alive(int rank) const noexcept = 0;
  /// Whether `rank` is stopped from outside (by SIGSTOP or a debugger), so that it does nothing for
  /// now. It is called only when a wait is reported.
  [[nodiscard]] virtual bool halted(int rank) const noexcept = 0;
};

}  // namespace untax
