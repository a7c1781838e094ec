#pragma once

#include <cstdint>
#include <functional>

#include <untax/flow/room.hpp>

namespace untax {

/// The four verbs of a channel, as places where a fault can strike.
enum class channel_verb : std::uint8_t { reserve, acquire, publish, retire };

/// One execution of a verb.
struct fault_site {
  int rank = 0;
  int kernel = 0;
  int worker = 0;
  int step = 0;  ///< number of the step in the worker's program
  std::uint64_t epoch = 0;
  channel_verb verb = channel_verb::reserve;
};

/// Sits between an engine and its signals, to see what happens when they are lost, late or
/// repeated, when a rank stalls or dies. An operator without a tap pays one untaken branch a verb.
/// Called from all workers at once.
class fault_tap {
 public:
  fault_tap() = default;
  fault_tap(const fault_tap&) = delete;
  fault_tap& operator=(const fault_tap&) = delete;
  virtual ~fault_tap() = default;

  /// A worker was launched, and is about to take the first step of its kernel: may sleep.
  virtual void launched(const fault_site& /*site*/) {}
  /// Before every verb: may sleep, or end the process.
  virtual void before(const fault_site& /*site*/) {}
  /// Instead of a signal: calls `deliver` once for a faithful one. It may be called later, until
  /// `settle` returns.
  virtual void signal(const fault_site& /*site*/, const room& /*target*/,
                      const std::function<void()>& deliver) {
    deliver();
  }
  /// The operator ends, and its workers with it.
  virtual void settle() {}
};

}  // namespace untax
