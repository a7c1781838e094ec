#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engines/model/mutation.hpp"
#include "engines/model/world_memory.hpp"

namespace untax::model {

/// A matrix that only one worker uses.
class private_matrix {
 public:
  explicit private_matrix(extent size)
      : size_(size),
        values_(static_cast<std::size_t>(size.rows) * static_cast<std::size_t>(size.cols)) {}
  /// Fails the execution if (row, col) is outside.
  [[nodiscard]] std::uint64_t& at(std::int64_t row, std::int64_t col);

 private:
  extent size_;
  std::vector<std::uint64_t> values_;
};

/// One worker slot of a rank. Carries out the verbs and actions of steps on model memory, with
/// actual numbers.
class worker {
 public:
  worker(const scenario& s, const schedule::rank_plan& plan, const std::optional<mutation>& change,
         const world_memory& memory);

  /// Forgets the last execution.
  void start() noexcept { doing_ = doing::nothing; }
  /// Carries out the program of worker `who` in an epoch.
  void run(schedule::worker_name who, std::uint64_t epoch);

  /// The current step and verb, for messages.
  [[nodiscard]] std::string whereabouts() const;

 private:
  /// The four verbs, with their values in `channel_verb`, and the states beside them.
  enum class doing : std::uint8_t { reserve, acquire, publish, retire, action, nothing };

  void take(const step& s);
  /// Calls `use(channel)` if the step has the verb. The channel is relaxed if the mutation weakens
  /// it.
  template <class Use>
  void speak(const step& s, channel_verb verb, Use&& use);
  void act(const step& s);
  void multiply(const step& s);
  void reduce(const step& s);
  void attend(const step& s);
  void merge(const step& s);
  void normalise(const step& s);
  void put(const place& to, std::int64_t row, std::int64_t col, std::uint64_t value);
  [[nodiscard]] std::uint64_t get(const place& from, std::int64_t row, std::int64_t col);
  [[nodiscard]] private_matrix* private_one(operand role);

  const scenario* scenario_;
  const schedule::rank_plan* plan_;
  std::optional<mutation> change_;
  const world_memory* memory_;
  private_matrix product_;
  private_matrix sum_;
  private_matrix panel_;
  schedule::step_position at_;
  doing doing_ = doing::nothing;
};

}  // namespace untax::model
