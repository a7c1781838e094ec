#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <untax/flow/control.hpp>
#include <untax/flow/liveness.hpp>

namespace untax {

/// The state of a rank, as seen by the others.
enum class rank_state : std::uint8_t { joining, running, halted, finished, failed, gone };

/// The state of `rank` now. It does not find `halted`, which takes longer. `alive` may be null.
[[nodiscard]] rank_state state_of(const control& world, const liveness* alive, int rank) noexcept;

/// The waits of all ranks at one moment. The graph names the rank that causes a wait that does not
/// end.
class wait_graph {
 public:
  /// One wait of one rank.
  struct waiter {
    int rank = -1;
    wait_snapshot wait;
  };

  /// A snapshot of all ranks. `alive` may be null.
  [[nodiscard]] static wait_graph of(const control& world, const liveness* alive);
  wait_graph(std::vector<rank_state> states, std::vector<waiter> waiters);

  /// The ranks of a cycle that can be reached from `from`, in order; empty if there is none. Waits
  /// between workers of one rank are no cycle.
  [[nodiscard]] std::vector<int> cycle(int from) const;
  /// The rank at which the chain of waits from `from` ends: one that is gone, failed, finished,
  /// halted, or waits for no rank, in this order of preference. If all of them wait, it is the rank
  /// for which the least advanced wait waits. If no wait has progress, it is the next rank in the
  /// cycle. It is `from` itself if `from` waits for no rank.
  [[nodiscard]] int suspect(int from) const;

  /// "rank 2 finished", "rank 2 is gone", "rank 2 is running and waits for nobody", "rank 2 waits
  /// for rank 0".
  [[nodiscard]] std::string describe(int rank) const;
  /// All waits, then the cycle that can be reached from `from`, if there is one. The text is at
  /// most 100 columns wide and about 50 lines long. `now` is on the clock of the records, in
  /// nanoseconds.
  [[nodiscard]] std::string text(int from, std::uint64_t now) const;

 private:
  [[nodiscard]] std::vector<int> reachable(int from) const;
  [[nodiscard]] int awaited_farthest_behind(const std::vector<int>& candidates) const;
  [[nodiscard]] std::vector<std::string> lines_of(int rank, std::uint64_t now) const;

  std::vector<rank_state> states_;
  std::vector<waiter> waiters_;
  std::vector<std::vector<int>> waits_for_;  // by rank, without itself, each peer once
};

/// "all_gather_gemm acquire, room 3, needs 4, has 3".
[[nodiscard]] std::string describe(const wait_snapshot& wait);

}  // namespace untax
