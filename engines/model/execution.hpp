#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engines/model/mutation.hpp"
#include "engines/model/search.hpp"
#include "engines/model/worker.hpp"
#include "engines/model/world_memory.hpp"

namespace untax::model {

/// A scenario as a subject of the model checker. Each worker slot of each rank is a thread. It runs
/// one worker of each stage, stage after stage. Between stages and epochs the slots of a rank meet
/// at a barrier. At the end of an epoch the first slot acts as the caller: it compares c,
/// overwrites it with a wrong value, and fills a for the next epoch.
class execution final : public subject {
 public:
  execution(const scenario& s, const std::optional<mutation>& change);

  [[nodiscard]] int threads() const override { return static_cast<int>(slots_.size()); }
  void begin() override;
  void thread(int index) override;
  void end() override;
  [[nodiscard]] std::string circumstances() const override;

  /// A number of accesses to counters that only a stuck execution reaches.
  [[nodiscard]] std::uint64_t depth() const;

 private:
  struct slot {
    const schedule::rank_plan* plan;
    int lane;
    worker hands;
    std::uint64_t meetings = 0;
  };

  /// A barrier of all slots of this slot's rank.
  void meet(slot& own);
  void callers_turn(const schedule::rank_plan& plan, std::uint64_t ended);
  void check_result(const schedule::rank_plan& plan, std::uint64_t epoch);

  const scenario* scenario_;
  std::vector<schedule::rank_plan> plans_;
  world_memory memory_;
  std::vector<slot> slots_;
  std::vector<int> first_slot_;  // of each rank
  execution_array<model_counter> arrivals_;
};

}  // namespace untax::model
