#include "engines/schedule/matrix_map.hpp"

#include <algorithm>

namespace untax::schedule {

matrix_map::matrix_map(extent size)
    : size_(size),
      row_index_(static_cast<std::size_t>(size.rows + 1), 0),
      col_index_(static_cast<std::size_t>(size.cols + 1), 0) {
  cut(0, 0, size.rows, size.cols);
}

void matrix_map::cut(std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols) {
  if (rows == 0 || cols == 0) return;
  row_index_[static_cast<std::size_t>(row)] = 1;
  row_index_[static_cast<std::size_t>(row + rows)] = 1;
  col_index_[static_cast<std::size_t>(col)] = 1;
  col_index_[static_cast<std::size_t>(col + cols)] = 1;
}

void matrix_map::seal() {
  if (size_.rows == 0 || size_.cols == 0) return;
  const int rows = number(row_index_);
  columns_ = number(col_index_);
  cells_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns_));
}

int matrix_map::number(std::vector<int>& marks) {
  int count = -1;
  for (int& mark : marks) mark = count += mark;
  return count;
}

void matrix_map::add_read(cell& c, const event& actor) {
  for (int i = c.readers; i >= 0; i = reads_[static_cast<std::size_t>(i)].next) {
    event& known = reads_[static_cast<std::size_t>(i)].by;
    if (known.lane == actor.lane) {
      known = actor;
      return;
    }
  }
  reads_.push_back({actor, c.readers});
  c.readers = static_cast<int>(reads_.size()) - 1;
}

event matrix_map::unordered_read(const cell& c, const vector_clock& now) const {
  for (int i = c.readers; i >= 0; i = reads_[static_cast<std::size_t>(i)].next) {
    const event& actor = reads_[static_cast<std::size_t>(i)].by;
    if (!actor.before(now)) return actor;
  }
  return {};
}

void matrix_map::write(cell& c, const event& actor, std::uint64_t epoch, bool complete,
                       const origin& from) {
  c = {.written = actor, .epoch = epoch, .complete = complete, .readers = -1, .from = from};
}

std::int64_t matrix_map::position_of(const std::vector<int>& index, int number) {
  return std::lower_bound(index.begin(), index.end(), number) - index.begin();
}

place matrix_map::corner_of(const cell& c) const {
  const int at = static_cast<int>(&c - cells_.data());
  return {.row = position_of(row_index_, at / columns_),
          .col = position_of(col_index_, at % columns_)};
}

extent matrix_map::extent_of(const cell& c) const {
  const int at = static_cast<int>(&c - cells_.data());
  const place corner = corner_of(c);
  return {position_of(row_index_, at / columns_ + 1) - corner.row,
          position_of(col_index_, at % columns_ + 1) - corner.col};
}

}  // namespace untax::schedule
