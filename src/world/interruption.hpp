#pragma once

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction(2) is POSIX

#include <array>

#include "descriptor.hpp"

namespace untax {

/// A scope in which SIGINT, SIGTERM and SIGHUP do not end this process, but are recorded here. A
/// signal that was ignored stays ignored (nohup). A process can have one such scope at a time.
class interruption {
 public:
  interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  ~interruption();

  /// A descriptor that is readable when a signal has arrived.
  [[nodiscard]] int number() const noexcept { return reader_.get(); }
  /// The next signal that has arrived; 0 if there is none.
  [[nodiscard]] int take() const noexcept;

 private:
  static constexpr std::array<int, 3> signals = {SIGINT, SIGTERM, SIGHUP};

  descriptor reader_;
  descriptor writer_;
  std::array<struct sigaction, signals.size()> before_{};
};

/// A scope in which the kernel keeps the statuses of children until they are waited for. If SIGCHLD
/// is ignored, which a program inherits from its parent, the kernel would discard them.
class kept_statuses {
 public:
  kept_statuses();
  kept_statuses(const kept_statuses&) = delete;
  kept_statuses& operator=(const kept_statuses&) = delete;
  ~kept_statuses();

 private:
  struct sigaction before_ {};
  bool changed_ = false;
};

}  // namespace untax
