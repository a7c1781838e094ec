#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <untax/flow/control.hpp>
#include <untax/flow/liveness.hpp>
#include <untax/symmetric/segment.hpp>

namespace untax {

/// Looks after the kernels of the ranks of this process, every 10 ms, in a thread of its own. A
/// kernel can end its own waits, but only the host can say why:
///
/// * A kernel gave up: the world is stopped with the wait-for graph, as if a thread had waited.
/// * The rank that a kernel waits for is lost: likewise.
/// * The world was stopped by anybody: the stop words of our devices are written.
class device_monitor {
 public:
  /// `ranks` are those of this process. `alive` may be null and has to outlive the monitor.
  device_monitor(std::shared_ptr<const segment> memory, std::vector<int> ranks,
                 std::chrono::milliseconds limit, const liveness* alive);
  device_monitor(const device_monitor&) = delete;
  device_monitor& operator=(const device_monitor&) = delete;
  ~device_monitor();

  /// Looks now. If a kernel of `rank` left because the world was stopped, waits for the reason to
  /// be written, a second at most.
  void settle(int rank) noexcept;

 private:
  /// A wait that looks lost. It is only reported if the next look says the same, since what a peer
  /// signalled just before it ended is seen between them.
  struct suspicion {
    int rank = -1;
    int slot = -1;
    int lost = -1;
    std::uint64_t since = 0;
    bool operator==(const suspicion&) const = default;
  };

  void run();
  void look() noexcept;
  void report_limits();
  void report_losses();
  [[nodiscard]] std::optional<suspicion> find_loss() const;
  void forward_stop() noexcept;

  std::shared_ptr<const segment> memory_;
  control state_;
  std::vector<int> ranks_;
  std::chrono::milliseconds limit_;
  const liveness* alive_;

  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  std::vector<int> unstopped_;  // ranks whose stop words are to be written
  std::optional<suspicion> suspected_;
  bool leaving_ = false;

  std::thread thread_;
};

}  // namespace untax
