#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/schedule/plan.hpp"
#include "engines/schedule/problems.hpp"
#include "engines/schedule/walk.hpp"

namespace untax::schedule {

/// The raises of every counter. The constructor checks every room and every pair of verbs:
/// * indices are below counters(), ranks are in the world, and the right side of a room has the
///   verb;
/// * a counter has one writer, which only raises it; one in each epoch where epochs are not alike;
/// * each acquire has its publish, by the named producer; each reserve has the retire of every
///   reader.
class signal_table {
 public:
  struct raise {
    std::uint64_t value = 0;
    step_position by;
    channel_verb verb = channel_verb::publish;
  };

  signal_table(std::span<const rank_plan> plans, problem_list& problems);

  /// The first raise of counter `index` at rank `rank` to at least `value`; nullptr if there is
  /// none.
  [[nodiscard]] const raise* first_reaching(int rank, int index, std::uint64_t value) const;

 private:
  bool check_room(const step_position& at, channel_verb verb, const room& r, int reader);
  void record(const step_position& at, channel_verb verb, int rank, int index, std::uint64_t value);
  void check_wait(const step_position& at, channel_verb verb, const room& r);
  void expect(const step_position& at, channel_verb verb, const room& r, channel_verb wanted,
              int rank, int index, std::uint64_t value);
  [[nodiscard]] std::string where(const step_position& at) const;

  std::span<const rank_plan> plans_;
  problem_list* problems_;
  std::vector<std::vector<std::vector<raise>>>
      raises_;  // [rank][index], in the order of the writer's program
};

}  // namespace untax::schedule
