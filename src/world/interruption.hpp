#pragma once

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction(2) is POSIX

#include <array>

#include "descriptor.hpp"

namespace untax {

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end this process; they are noted here. A
/// signal that was ignored stays ignored (nohup). One at a time in a process.
class interruption {
 public:
  interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  ~interruption();

  /// Readable when a signal has arrived.
  [[nodiscard]] int number() const noexcept { return reader_.get(); }
  /// The next signal that has arrived, 0 if none.
  [[nodiscard]] int take() const noexcept;

 private:
  static constexpr std::array<int, 3> signals = {SIGINT, SIGTERM, SIGHUP};

  descriptor reader_;
  descriptor writer_;
  std::array<struct sigaction, signals.size()> before_{};
};

/// While it lives, the statuses of children are kept until somebody asks. Where SIGCHLD is ignored,
/// which a program inherits from whoever started it, the kernel would throw them away.
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
