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

/// Watches the kernels of the ranks of this process, every 10 ms, in a thread of its own. A kernel
/// can end its own waits, but only the host can report the reason:
///
/// * A kernel gave up: the monitor stops the world with the wait-for graph, as for a host thread.
/// * The rank that a kernel waits for is lost: likewise.
/// * Any rank has stopped the world: the monitor writes the stop words of this process's devices.
class device_monitor {
 public:
  /// `ranks` are those of this process. `alive` may be null and has to outlive the monitor.
  device_monitor(std::shared_ptr<const segment> memory, std::vector<int> ranks,
                 std::chrono::milliseconds limit, const liveness* alive);
  device_monitor(const device_monitor&) = delete;
  device_monitor& operator=(const device_monitor&) = delete;
  ~device_monitor();

  /// Checks now. If a kernel of `rank` ended because the world was stopped, waits until the reason
  /// is written, at most one second.
  void settle(int rank) noexcept;

 private:
  /// A wait for a rank that seems lost. It is reported only if the next look finds the same:
  /// signals that a peer raised just before it ended are seen between the looks.
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

  std::mutex mutex_;  // protects the following members
  std::condition_variable changed_;
  std::vector<int> unstopped_;  // ranks whose stop words are not written yet
  std::optional<suspicion> suspected_;
  bool leaving_ = false;

  std::thread thread_;
};

}  // namespace untax
