#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/schedule/memory_map.hpp"
#include "engines/schedule/need.hpp"
#include "engines/schedule/plan.hpp"
#include "engines/schedule/problems.hpp"
#include "engines/schedule/signals.hpp"

namespace untax::schedule {

/// Executes all programs once, on vector clocks instead of values.
///
/// One order of execution suffices. Counters are only raised, so a step that can proceed can
/// proceed at any later time: if one order ends, all do. The vector clocks contain only relations
/// that hold in every order: program order, stages and epochs of a rank, and for each wait the one
/// signal it needs. Accesses that they leave unordered can race.
class execution {
 public:
  /// Without a filter every verb orders accesses.
  execution(std::span<const rank_plan> plans, const signal_table& signals, problem_list& problems,
            ordering_filter orders = {});

  /// Runs to the end, or reports a deadlock.
  void run();

  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint64_t waits() const noexcept { return waits_; }

 private:
  struct counter {
    std::vector<std::uint64_t> values;  // ascending, in the order in which they were reached
    std::vector<vector_clock> clocks;   // the writer's clock at each of them
    event raised;                       // the raise to the last of them
    step_position raised_by;
  };
  /// A worker slot of a rank; the workers of one stage after another run in it.
  struct lane {
    vector_clock now;
    std::uint32_t time = 0;
    int next = 0;
    bool busy = false;
  };
  struct rank_state {
    std::uint64_t epoch = 1;
    std::size_t stage = 0;
    bool ended = false;
    int first_lane = 0;
  };

  [[nodiscard]] bool reached(const need& n) const;
  bool advance(int rank);
  bool advance_lane(int rank, int index);
  void carry_out(const step_position& at, const step& s, lane& l, int lane_index);
  void learn(const need& n, vector_clock& now) const;
  /// Lane `lane_index` raises a counter in its step `at`. `teaches`: a lane that waits for the
  /// counter then has the clock of this lane.
  void raise(const need& to, const step_position& at, int lane_index, bool teaches);
  void report_overtaking(const need& to, const step_position& at);
  [[nodiscard]] bool orders(const step_position& at, const step& s, channel_verb verb) const;
  void end_stage(int rank);
  void start_stage(int rank);
  void callers_turn(int rank, std::uint64_t ended);
  [[nodiscard]] std::span<lane> lanes_of(int rank);

  [[nodiscard]] step_position position(int rank, int index) const;
  [[nodiscard]] const step& step_at(const step_position& at) const;

  // Explains a deadlock; in deadlock.cpp.
  struct blocked {
    int rank = 0;
    int index = 0;
  };
  void report_deadlock();
  [[nodiscard]] blocked first_blocked(int rank) const;
  [[nodiscard]] need missing(const blocked& b) const;
  [[nodiscard]] blocked culprit(const need& n) const;

  std::span<const rank_plan> plans_;
  const signal_table* signals_;
  problem_list* problems_;
  ordering_filter orders_;
  memory_map memory_;
  std::vector<std::vector<counter>> counters_;  // [rank][index]
  std::vector<rank_state> ranks_;
  std::vector<lane> lanes_;
  vector_clock nothing_;  // the clock of a signal that orders nothing
  std::uint64_t steps_ = 0;
  std::uint64_t waits_ = 0;
};

}  // namespace untax::schedule
