#pragma once

#include <chrono>
#include <cstdint>

#include <untax/flow/control.hpp>
#include <untax/flow/liveness.hpp>
#include <untax/flow/wait.hpp>
#include <untax/memory/host_memory.hpp>

namespace untax {

/// Searches for another reason why a wait may never end.
class wait_suspicion {
 public:
  wait_suspicion() = default;
  wait_suspicion(const wait_suspicion&) = delete;
  wait_suspicion& operator=(const wait_suspicion&) = delete;
  virtual ~wait_suspicion() = default;

  /// Called each time the watch looks at a wait, on the waiting thread. It stops the world if it
  /// finds a reason.
  virtual void look() = 0;
};

/// Watches the waits of one worker on the host (a `wait_guard`). It publishes the wait record. It
/// ends the wait when the world was stopped, when a rank is lost, or when the limit has passed. In
/// the last two cases it stops the world itself, with a text that names the suspect; exactly one
/// watch of the world does so.
///
/// If a wait ends with anything but `ok`, the worker leaves through the normal exit and calls
/// `throw_failure`.
class watch {
 public:
  /// `slot` is the index of the worker's record. Workers that wait at the same time have different
  /// ones. A worker beyond the table is watched in the same way, but does not appear in the
  /// wait-for graph. `limit` 0 waits for ever. `alive` may be null, since threads do not die alone;
  /// else it has to outlive the watch.
  watch(const control& world, int rank, int slot, std::chrono::milliseconds limit,
        const liveness* alive = nullptr) noexcept
      : world_(world), rank_(rank), slot_(slot), limit_(limit), alive_(alive) {}

  /// True every 2 ms once a wait has spun for a while. So a stop is noticed without a delay that a
  /// person would see, and a short wait never looks. It counts time and not polls: on a busy
  /// machine a poll that yields the core lasts as long as other threads use it.
  [[nodiscard]] bool due(poll_count polls) noexcept {
    if (polls < spinning_polls) return false;
    const std::uint64_t now = host_memory::now();
    if (polls == spinning_polls) looked_ = now;
    if (now - looked_ < 2'000'000) return false;
    looked_ = now;
    return true;
  }
  /// Publishes the record and checks the reasons to end the wait.
  [[nodiscard]] wait_outcome look(const wait_site& site, std::uint64_t seen);
  /// Clears the record.
  void leave() noexcept;

  /// From now on also calls `also`, which has to outlive the watch; null for none.
  void ask(wait_suspicion* also) noexcept { also_ = also; }

 private:
  [[nodiscard]] wait_outcome stop(const stop_report& report, wait_outcome mine, std::uint64_t now);

  control world_;
  int rank_;
  int slot_;
  std::chrono::milliseconds limit_;
  const liveness* alive_;
  wait_suspicion* also_ = nullptr;
  static constexpr poll_count spinning_polls = 128;

  std::uint64_t looked_ = 0;  // the time of the last look
  std::uint64_t since_ = 0;   // 0: no wait is being looked at
  int lost_before_ = -1;      // the rank that the last look found lost
  std::uint64_t beaten_ = 0;  // the time when another reporter was first found to be quicker
};

static_assert(wait_guard<watch>);

}  // namespace untax
