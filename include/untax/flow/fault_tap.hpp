#pragma once

#include <cstdint>
#include <functional>

#include <untax/flow/room.hpp>

namespace untax {

/// The four verbs of a channel, as sites of faults.
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

/// Stands between an engine and its signals, for tests of signals that are lost, late or repeated,
/// and of ranks that stall or die. An operator without a tap pays one untaken branch for each verb.
/// All workers call it at the same time.
class fault_tap {
 public:
  fault_tap() = default;
  fault_tap(const fault_tap&) = delete;
  fault_tap& operator=(const fault_tap&) = delete;
  virtual ~fault_tap() = default;

  /// Called when a worker was launched and is about to do the first step of its kernel. It may
  /// sleep.
  virtual void launched(const fault_site& /*site*/) {}
  /// Called before every verb. It may sleep, or end the process.
  virtual void before(const fault_site& /*site*/) {}
  /// Called instead of a signal. A faithful tap calls `deliver` once. `deliver` may be called
  /// later, until `settle` returns.
  virtual void signal(const fault_site& /*site*/, const room& /*target*/,
                      const std::function<void()>& deliver) {
    deliver();
  }
  /// Called when the operator and its workers end.
  virtual void settle() {}
};

}  // namespace untax
