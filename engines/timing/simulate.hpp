#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/timing/machine.hpp"
#include "engines/timing/network.hpp"
#include "engines/timing/workload.hpp"

namespace untax::timing {

/// The parts of the time of a worker, of a rank or of the critical path, in seconds.
struct time_parts {
  double launch = 0;     ///< until the worker's kernel begins to work
  double compute = 0;    ///< the worker multiplies, attends or adds
  double move = 0;       ///< the worker moves bytes itself
  double late_peer = 0;  ///< the worker waits for a signal that has not been sent
  double in_flight = 0;  ///< the worker waits for a signal that is on its way
  double tail = 0;       ///< the worker has ended, and other workers have not

  [[nodiscard]] double total() const noexcept {
    return launch + compute + move + late_peer + in_flight + tail;
  }
  void add(const time_parts& other) noexcept;
};

/// A piece of the critical path, which is the reason why the run ended no earlier.
struct path_piece {
  int rank = 0;
  int kernel = 0;
  double begin = 0;
  double end = 0;
  double time_parts::*part = nullptr;
};

/// The work of one worker in one span of time, for tests and timelines.
struct work_span {
  std::size_t worker = 0;
  double begin = 0;
  double end = 0;
  double time_parts::*part = nullptr;
  /// Index in the worker; of a wait, the index of the activity that waits.
  std::size_t activity = 0;
};

struct simulation_options {
  std::uint64_t seed = 1;
  bool keeps_path = false;   ///< fills `path`, which takes memory for each activity
  bool keeps_spans = false;  ///< fills `spans` and `bookings`
};

struct simulation {
  double seconds = 0;                ///< from the first rank's begin to the last one's end
  std::vector<double> rank_seconds;  ///< when each rank ended
  std::vector<time_parts> ranks;     ///< mean of the workers of each rank
  std::vector<time_parts> workers;   ///< in the order of the workload
  std::vector<path_piece> path;      ///< the last piece first; together as long as `seconds`
  std::vector<lane> lanes;           ///< the bytes and times of each link
  std::vector<work_span> spans;
  std::vector<booking> bookings;
  std::uint64_t activities = 0;

  /// The critical path, by part.
  [[nodiscard]] time_parts path_parts() const;
};

/// Simulates the execution of a workload: a queue of events, in each of which a worker continues or
/// a signal arrives. The same seed gives the same times. Throws `internal`, with the worker and its
/// wait, if a worker waits for a signal that no worker sends.
[[nodiscard]] simulation simulate(const workload& work, const machine& m,
                                  const simulation_options& options = {});

}  // namespace untax::timing
