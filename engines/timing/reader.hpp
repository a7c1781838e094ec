#pragma once

#include <functional>
#include <span>

#include <untax/tile/program.hpp>

#include "engines/schedule/lanes.hpp"
#include "engines/timing/workload.hpp"

namespace untax::timing {

/// The costs of the steps of a kernel's workers.
struct step_costs {
  double launch = 0;  ///< seconds from the start of its stage until its workers begin
  double begin = 0;   ///< extra seconds of a worker's first work, after its first wait
  double rate = 0;    ///< bytes a second that all its workers send together; 0: no limit
  double element_bytes = 2;
  double k_seconds = 0;      ///< to multiply a tile with an element of each of its rows
  double bytes_on_wire = 1;  ///< bytes on the wire per byte of data: 2 for packets
  double move_pace = 0;      ///< most bytes a second of a worker that moves; 0: no limit
  double local_pace = 0;  ///< most bytes a second of a worker that moves within a rank; 0: no limit
  std::int64_t added_together = 0;  ///< elements that a worker adds at a time; 0: any number
  double add_seconds = 0;           ///< seconds of each such addition, beside moving their bytes
  double added_bytes = 1;   ///< the bytes whose copy within a rank takes as long as one byte's
                            ///< addition: half of one if the addition only reads
  double begin_after = 0;   ///< seconds until a move begins
  double signal_after = 0;  ///< seconds until a signal after a move begins, if it is a copy
  signal_way way = signal_way::released;
  bool posted = false;    ///< other agents wait until moves have arrived, and signal
  bool detached = false;  ///< moves and additions are asynchronous: the worker goes on
};

/// Reads all kernels and workers of all ranks, for one epoch: the third reader of programs. Every
/// step becomes at most a few activities, which wait, move or compute, and signal. `costs_of` gives
/// the costs of each kernel.
[[nodiscard]] workload read_programs(std::span<const program> programs, std::uint64_t epoch,
                                     const std::function<step_costs(const kernel&)>& costs_of);

/// As above, for the lanes of all ranks, which the schedule checker proves, in their first epoch.
/// `costs_of` gives the costs of a kernel by the work of its lanes and its number.
[[nodiscard]] workload read_lanes(
    std::span<const schedule::lane_program> ranks,
    const std::function<step_costs(schedule::lane_work, int kernel)>& costs_of);

}  // namespace untax::timing
