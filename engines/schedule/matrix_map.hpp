#pragma once

#include <cstdint>
#include <vector>

#include "engines/schedule/plan.hpp"
#include "engines/schedule/walk.hpp"

namespace untax::schedule {

/// The time of each lane, as known to one of them. A lane is a worker slot of a rank; lanes are
/// numbered over all ranks.
using vector_clock = std::vector<std::uint32_t>;

/// An action of a lane at its own time. `id` names the event in messages.
struct event {
  int lane = -1;
  std::uint32_t time = 0;
  int id = -1;

  [[nodiscard]] bool happened() const noexcept { return lane >= 0; }
  /// Whether this event happens before all later actions of a lane with this clock, in every order
  /// of execution.
  [[nodiscard]] bool before(const vector_clock& now) const noexcept {
    return !happened() || now[static_cast<std::size_t>(lane)] >= time;
  }
};

/// The origin of the elements of a rectangle: the element at (row, col) of its matrix is the one at
/// (row - down, col - right) of `of`.
struct origin {
  operand of = operand::none;  ///< a, or product, that is a x b^T; none: not known
  int rank = -1;               ///< the rank whose operand it is; of a sum, the first rank
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool sum = false;  ///< whether the elements are a sum over ranks, perhaps of one rank so far
  int ranks = 1;     ///< the number of consecutive ranks in a sum

  [[nodiscard]] bool known() const noexcept { return of != operand::none; }
  /// The rank that a sum adds next, as ranks are combined in their order.
  [[nodiscard]] int next() const noexcept { return rank + ranks; }
  [[nodiscard]] bool is_of_all(int world) const noexcept { return rank == 0 && ranks == world; }
  /// The origin of the same elements after they were moved from `from` to `to`.
  [[nodiscard]] origin moved(const place& from, const place& to) const noexcept {
    if (!known()) return {};
    origin moved_origin = *this;
    moved_origin.down += to.row - from.row;
    moved_origin.right += to.col - from.col;
    return moved_origin;
  }
  /// The origin of a sum that begins with these elements.
  [[nodiscard]] origin begun() const noexcept {
    origin first = *this;
    first.sum = known();
    return first;
  }
  [[nodiscard]] bool operator==(const origin&) const = default;
};

/// The history of one matrix of one rank, by the cells into which the edges of all accesses cut it.
class matrix_map {
 public:
  explicit matrix_map(extent size);

  /// Cuts cells at the edges of a rectangle. To be called for all rectangles that will be used,
  /// before `seal`, which makes the cells.
  void cut(std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols);
  void seal();

  struct cell {
    event written;
    std::uint64_t epoch = 0;  ///< of the last write
    bool complete = false;    ///< whether that write left more than a partial result
    int readers = -1;         ///< first of a list of reads since that write
    origin from = {};         ///< the origin of the written data
  };

  /// Calls `visit(cell)` for the cells of a rectangle until it returns false.
  template <class Visit>
  void each_cell(std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols,
                 Visit&& visit) {
    if (rows == 0 || cols == 0) return;
    const int last_row = row_index_[static_cast<std::size_t>(row + rows)];
    const int last_col = col_index_[static_cast<std::size_t>(col + cols)];
    for (int i = row_index_[static_cast<std::size_t>(row)]; i < last_row; ++i) {
      for (int j = col_index_[static_cast<std::size_t>(col)]; j < last_col; ++j) {
        const int at = i * columns_ + j;
        if (!visit(cells_[static_cast<std::size_t>(at)])) return;
      }
    }
  }

  /// Records a read of the cell by a lane, until the cell is written.
  void add_read(cell& c, const event& actor);
  /// A read that does not happen before `now`; if there is none, an event that has not happened.
  [[nodiscard]] event unordered_read(const cell& c, const vector_clock& now) const;
  /// Records a write of the cell.
  static void write(cell& c, const event& actor, std::uint64_t epoch, bool complete,
                    const origin& from);

  [[nodiscard]] extent size() const noexcept { return size_; }
  /// The upper left corner and the size of a cell.
  [[nodiscard]] place corner_of(const cell& c) const;
  [[nodiscard]] extent extent_of(const cell& c) const;

 private:
  struct read {
    event by;
    int next = -1;
  };
  /// Turns marks at cut positions into the number of cuts before each position.
  static int number(std::vector<int>& marks);
  [[nodiscard]] static std::int64_t position_of(const std::vector<int>& index, int number);

  extent size_;
  std::vector<int> row_index_;
  std::vector<int> col_index_;
  int columns_ = 0;
  std::vector<cell> cells_;
  std::vector<read> reads_;
};

}  // namespace untax::schedule
