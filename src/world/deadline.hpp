#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace untax {

/// How long a join may wait before it asks `interrupted` again.
inline constexpr std::chrono::milliseconds join_slice{50};

/// A point in time, or never, with timeouts for poll(2).
class deadline {
 public:
  using clock = std::chrono::steady_clock;

  /// A deadline `limit` from now. 0 is never, and so is a limit that the clock cannot count.
  explicit deadline(std::chrono::milliseconds limit) {
    const auto now = clock::now();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(clock::time_point::max() - now);
    if (limit.count() > 0 && limit < left) at_ = now + limit;
  }

  [[nodiscard]] bool passed() const { return clock::now() >= at_; }
  /// Milliseconds until the deadline, rounded up, and at most `most`. -1 (wait for ever) if there
  /// is neither a deadline nor `most`.
  [[nodiscard]] int poll_time(
      std::chrono::milliseconds most = std::chrono::milliseconds::max()) const {
    if (at_ == clock::time_point::max() && most == std::chrono::milliseconds::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - clock::now());
    const auto time = std::clamp(std::min(left, most), std::chrono::milliseconds(0),
                                 std::chrono::milliseconds(std::numeric_limits<int>::max()));
    return static_cast<int>(time.count());
  }

 private:
  clock::time_point at_ = clock::time_point::max();
};

}  // namespace untax
