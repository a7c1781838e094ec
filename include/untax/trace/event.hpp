#pragma once

#include <cstdint>

namespace untax {

/// The kind of an event of a worker. A `signal` is a moment, the others last.
enum class trace_kind : std::uint8_t {
  run,     ///< of an operator, on the thread that called it; number: the epoch
  stage,   ///< of the run, likewise; number: the stage
  kernel,  ///< of one worker; number: the kernel
  action,  ///< of a step; what: `action`
  wait,    ///< for a counter; what: `channel_verb`; number: the use that it waits for
  signal,  ///< raises a counter; what: `channel_verb`; number: the use that it signals
};

/// An event of 16 bytes: its time, and a word with all other fields.
struct trace_event {
  std::uint64_t time =
      0;  ///< nanoseconds: on hosts of the monotonic clock, in kernels %globaltimer
  std::uint64_t word = 0;
};
static_assert(sizeof(trace_event) == 16);

}  // namespace untax
