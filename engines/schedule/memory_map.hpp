#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engines/schedule/matrix_map.hpp"
#include "engines/schedule/plan.hpp"
#include "engines/schedule/problems.hpp"

namespace untax::schedule {

/// All matrices of all ranks, and who touched them. Finds, for any timing of the ranks:
/// * two accesses, one of them a write, that nothing orders;
/// * reads of what was not written, or not finished, in the epoch of the reader;
/// * elements of c that are completed twice in an epoch, or never.
///
/// The caller takes part as he does in life: before each epoch of a rank he writes a, after it he
/// reads c and writes something else there.
class memory_map {
 public:
  memory_map(std::span<const rank_plan> plans, problem_list& problems);

  /// A step that lane `lane` carries out at `time`, knowing `now`.
  void carry_out(const step_position& at, int lane, std::uint32_t time, const vector_clock& now);
  /// The caller's turn at `rank` after epoch `ended` (0: before the first).
  void callers_turn(int rank, std::uint64_t ended, int lane, std::uint32_t time,
                    const vector_clock& now);

 private:
  [[nodiscard]] matrix_map& of(const place& at);
  void read(const access& a, const event& by, std::uint64_t epoch, const vector_clock& now);
  void write(const access& a, const step& s, const event& by, std::uint64_t epoch,
             const vector_clock& now);
  void check_result(int rank, std::uint64_t epoch);
  void overwrite(const place& at, const event& by, std::uint64_t epoch, bool complete,
                 const vector_clock& now);
  /// Whether the cell was touched by somebody whom `now` does not know to be done with it; reports
  /// that.
  bool races(const matrix_map& map, const matrix_map::cell& c, const access& a, const event& by,
             const vector_clock& now);
  /// Notes an event under a number.
  int name(const step_position& at, bool caller);
  [[nodiscard]] std::string text_of(const event& e) const;
  [[nodiscard]] static std::string text_of(const matrix_map& map, const matrix_map::cell& c,
                                           const place& at);

  struct happening {
    step_position at;
    bool caller = false;
  };

  std::span<const rank_plan> plans_;
  problem_list* problems_;
  std::vector<std::array<matrix_map, 4>> maps_;  // [rank]: a, c, inbox, outbox
  std::vector<happening> happenings_;
};

}  // namespace untax::schedule
