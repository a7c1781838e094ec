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

/// All matrices of all ranks, and who touched them. Finds, for any timing of the ranks:
/// * two accesses, one of them a write, that nothing orders;
/// * reads of what was not written, or not finished, in the epoch of the reader;
/// * elements of c that are completed twice in an epoch, or never;
/// * words that stand for something else than those that they are moved, added or stored with: what
///   was left in a room from a tile before, say; rows and columns of a that are multiplied into
///   other rows of c, or with other columns of b, than their neighbours.
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
  void read(const access& a, const step& s, const event& by, std::uint64_t epoch,
            const vector_clock& now);
  void write(const access& a, const step& s, const origin& from, const event& by,
             std::uint64_t epoch, const vector_clock& now);
  void check_result(int rank, std::uint64_t epoch);
  void overwrite(const place& at, const origin& from, const event& by, std::uint64_t epoch,
                 bool complete, const vector_clock& now);
  /// Whether the cell was touched by somebody whom `now` does not know to be done with it; reports
  /// that.
  bool races(const matrix_map& map, const matrix_map::cell& c, const access& a, const event& by,
             const vector_clock& now);

  // What words stand for; in origins.cpp.

  /// Private tiles of a lane.
  struct private_tiles {
    origin product;
    origin sum;
  };
  /// Of what a step writes. Notes it where that is a private tile.
  [[nodiscard]] origin origin_of(const step& s, const event& by);
  /// Of what lies in a rectangle, which has to be one.
  [[nodiscard]] origin origin_in(const place& at, std::int64_t rows, std::int64_t cols,
                                 const event& by);
  /// Of two that are combined: both have to be the same, of whatever ranks.
  [[nodiscard]] origin combined(const origin& one, const origin& other, const event& by);
  /// In c, what comes from one rank lies at the same distance from there.
  void expect_in_place(const place& at, const origin& from, const event& by);
  /// Where c is made of a: a row of a belongs to one row of c, a column to one of b, and a row of b
  /// to a column of c.
  void expect_factor(const step& s, const origin& from, const event& by);
  /// What is known of a rank in epochs like that of the event, as an index.
  [[nodiscard]] std::size_t known_of(int rank, const event& by) const;
  [[nodiscard]] private_tiles& private_of(const event& by);
  [[nodiscard]] const rank_plan& plan_of(const event& by) const;
  [[nodiscard]] static std::string text_of(const origin& from, const place& at);

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
  std::vector<private_tiles> private_;          // by lane
  std::vector<std::vector<origin>> seen_in_c_;  // by rank of c: one for each place it comes from
  /// How far rows of c lie behind those of a, and columns of b behind those of a: by rank of a.
  std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> factors_;
  /// How far columns of c lie behind rows of b: by rank.
  std::vector<std::optional<std::int64_t>> columns_;
};

}  // namespace untax::schedule
