#pragma once

namespace untax {

/// Says whether a peer is dead or only slow. Called from any thread, every few milliseconds during
/// a wait.
class liveness {
 public:
  liveness() = default;
  liveness(const liveness&) = delete;
  liveness& operator=(const liveness&) = delete;
  virtual ~liveness() = default;

  /// Whether `rank` may still do something. Once false, always false.
  [[nodiscard]] virtual bool alive(int rank) const noexcept = 0;
  /// Whether `rank` is held from outside (by SIGSTOP or a debugger), so that it does nothing for
  /// now. Asked only when a wait is reported.
  [[nodiscard]] virtual bool halted(int rank) const noexcept = 0;
};

}  // namespace untax
