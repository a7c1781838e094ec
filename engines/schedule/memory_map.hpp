#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engines/schedule/matrix_map.hpp"
#include "engines/schedule/plan.hpp"
#include "engines/schedule/problems.hpp"

namespace untax::schedule {

/// All matrices of all ranks, and the accesses to them. Finds, for any timing of the ranks:
/// * two accesses, one of them a write, that nothing orders;
/// * reads of elements that were not written, or not completed, in the epoch of the reader;
/// * elements of c that are completed twice in an epoch, or never;
/// * elements that are moved, added or stored together with elements of another origin, such as
///   those that an earlier tile left in a room; rows and columns of a that are multiplied into
///   other rows of c, or with other columns of b, than their neighbours;
/// * sums over ranks that leave a rank out, take one twice, or do not take them in rank order.
///
/// The caller takes part: before each epoch of a rank it writes a, and afterwards it reads c and
/// overwrites it.
class memory_map {
 public:
  memory_map(std::span<const rank_plan> plans, problem_list& problems);

  /// Carries out a step of lane `lane` at `time`, with the clock `now`.
  void carry_out(const step_position& at, int lane, std::uint32_t time, const vector_clock& now);
  /// The caller's turn at `rank` after epoch `ended` (0: before the first).
  void callers_turn(int rank, std::uint64_t ended, int lane, std::uint32_t time,
                    const vector_clock& now);

 private:
  [[nodiscard]] matrix_map& of(const place& at);
  void read(const access& a, const step& s, const event& actor, std::uint64_t epoch,
            const vector_clock& now);
  void write(const access& a, const step& s, const origin& from, const event& actor,
             std::uint64_t epoch, const vector_clock& now);
  void check_result(int rank, std::uint64_t epoch);
  void overwrite(const place& at, const origin& from, const event& actor, std::uint64_t epoch,
                 bool complete, const vector_clock& now);
  /// Whether an access races with an earlier one of the cell, which does not happen before `now`.
  /// Reports the race.
  bool races(const matrix_map& map, const matrix_map::cell& c, const access& a, const event& actor,
             const vector_clock& now);

  // The origins of elements; in origins.cpp.

  /// The origins of a lane's private tiles.
  struct private_tiles {
    origin product;
    origin sum;
  };
  /// The origin of the data that a step writes. Stores it if the destination is a private tile.
  [[nodiscard]] origin origin_of(const step& s, const event& actor);
  /// The origin of a rectangle. Reports a problem unless all its elements have the same one.
  [[nodiscard]] origin origin_in(const place& at, std::int64_t rows, std::int64_t cols,
                                 const event& actor);
  /// The origin of the combination of two sums. Their origins may differ only in the ranks, and the
  /// ranks of `other` come next.
  [[nodiscard]] origin combined(const origin& first, const origin& other, const event& actor);
  /// Checks that all elements of c from one rank have been moved by the same distance, and that
  /// sums there are of all ranks.
  void expect_in_place(const place& at, const origin& from, const event& actor);
  /// Checks the operands of c: a row of a belongs to one row of c, a column of a to one column of
  /// b, and a row of b to one column of c.
  void expect_factor(const step& s, const origin& from, const event& actor);
  /// The index of the facts about a rank in epochs like that of the event.
  [[nodiscard]] std::size_t known_of(int rank, const event& actor) const;
  [[nodiscard]] private_tiles& private_of(const event& actor);
  [[nodiscard]] const rank_plan& plan_of(const event& actor) const;
  [[nodiscard]] std::string text_of(const origin& from, const place& at) const;
  [[nodiscard]] int world() const noexcept { return static_cast<int>(plans_.size()); }

  /// Records an event and returns its id.
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
  std::vector<private_tiles> private_;          // by lane
  std::vector<std::vector<origin>> seen_in_c_;  // by rank of c: one for each operand and rank
  /// Distances of rows of c from rows of a, and of columns of b from columns of a: by rank of a.
  std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> factors_;
  /// Distances of columns of c from rows of b: by rank.
  std::vector<std::optional<std::int64_t>> columns_;
};

}  // namespace untax::schedule
