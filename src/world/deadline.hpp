#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace untax {

/// A point in time, or never, with timeouts for poll(2).
class deadline {
 public:
  using clock = std::chrono::steady_clock;

  /// `limit` from now; 0 is never.
  explicit deadline(std::chrono::milliseconds limit)
      : at_(limit.count() > 0 ? clock::now() + limit : clock::time_point::max()) {}

  [[nodiscard]] bool passed() const { return clock::now() >= at_; }
  /// Milliseconds until then, rounded up, and at most `most`. -1 (wait for ever) if there is
  /// neither a deadline nor `most`.
  [[nodiscard]] int poll_time(
      std::chrono::milliseconds most = std::chrono::milliseconds::max()) const {
    if (at_ == clock::time_point::max() && most == std::chrono::milliseconds::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - clock::now());
    const auto time = std::clamp(std::min(left, most), std::chrono::milliseconds(0),
                                 std::chrono::milliseconds(std::numeric_limits<int>::max()));
    return static_cast<int>(time.count());
  }

 private:
  clock::time_point at_;
};

}  // namespace untax
