#pragma once

#include <span>

#include <untax/tile/program.hpp>

#include "engines/timing/machine.hpp"
#include "engines/timing/workload.hpp"

namespace untax::timing {

/// What steps of programs cost a worker.
struct step_costs {
  double element_bytes = 2;
  double multiply_rate = 0;  ///< FLOP/s of a worker
  double bytes_on_wire = 1;  ///< bytes on the wire per byte of data: 2 for packets
  double move_pace = 0;      ///< most bytes a second of a worker that moves; 0: no limit
  double local_pace = 0;     ///< the same within a rank
  double begin_after = 0;    ///< seconds until a move begins
  double signal_after = 0;   ///< the same for a signal behind it, if that is a copy, too
  double launch_first = 0;   ///< seconds of the first stage
  double launch_next = 0;    ///< seconds of each further stage
  signal_way way = signal_way::released;
  bool posted = false;    ///< other agents wait until moves have arrived, and signal
  bool detached = false;  ///< moves are asynchronous: the worker goes on
};

/// Adds one epoch of one worker's steps to the worker that was added last. Every step becomes at
/// most a few activities: what it waits for, what it moves or computes, what it signals.
void add_steps(workload& work, const program& source, int kernel, int worker, std::uint64_t epoch,
               const step_costs& costs);

/// The third reader of programs. Reads all kernels and workers of all ranks, for one epoch.
[[nodiscard]] workload read_programs(std::span<const program> programs, std::uint64_t epoch,
                                     const step_costs& costs);

}  // namespace untax::timing
