#pragma once

#include <chrono>
#include <cstdint>

#include <untax/flow/control.hpp>
#include <untax/flow/liveness.hpp>
#include <untax/flow/wait.hpp>
#include <untax/memory/host_memory.hpp>

namespace untax {

/// Knows another reason why a wait may never end.
class wait_suspicion {
 public:
  wait_suspicion() = default;
  wait_suspicion(const wait_suspicion&) = delete;
  wait_suspicion& operator=(const wait_suspicion&) = delete;
  virtual ~wait_suspicion() = default;

  /// Asked each time a wait is looked at; stops the world if there is such a reason.
  virtual void look() = 0;
};

/// Looks after the waits of one worker on the host (a `wait_guard`): it publishes the wait record,
/// and it ends the wait when the world was stopped, when a rank is lost, or when the limit has
/// passed. In the last two cases it stops the world itself, with a text that names the suspect, and
/// exactly one watch of the world does so.
///
/// When a wait ends with anything but `ok`, leave through the normal exit and call `throw_failure`.
class watch {
 public:
  /// `slot` is the place of the worker's record, different for each worker that waits at the same
  /// time; workers beyond the table are looked after in the same way but are missing from the
  /// wait-for graph. `limit` 0 waits for ever. `alive` may be null (threads do not die alone) and
  /// has to outlive the watch otherwise.
  watch(const control& world, int rank, int slot, std::chrono::milliseconds limit,
        const liveness* alive = nullptr) noexcept
      : world_(world), rank_(rank), slot_(slot), limit_(limit), alive_(alive) {}

  /// Every 2 ms once a wait has spun for a while, so that an abort is noticed at once by human
  /// measure and a wait that is short never looks. Polls are no measure of time: on a busy machine
  /// one that gives the core away takes as long as the others want it.
  [[nodiscard]] bool due(poll_count polls) noexcept {
    if (polls < spinning_polls) return false;
    const std::uint64_t now = host_memory::now();
    if (polls == spinning_polls) looked_ = now;
    if (now - looked_ < 2'000'000) return false;
    looked_ = now;
    return true;
  }
  [[nodiscard]] wait_outcome look(const wait_site& site, std::uint64_t seen);
  void leave() noexcept;

  /// From here on asks `also`, too, which has to outlive the watch; null for nobody.
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

  std::uint64_t looked_ = 0;  // when it was time to look last
  std::uint64_t since_ = 0;   // 0: no wait is being looked at
  int lost_before_ = -1;      // the rank that the last look found lost
  std::uint64_t beaten_ = 0;  // when another reporter was first found to be quicker
};

static_assert(wait_guard<watch>);

}  // namespace untax
