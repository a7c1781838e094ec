#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <untax/select/expression.hpp>

namespace untax::locality {

/// A matrix that blocks read or write. For caches it is divided into granules: rectangles of one
/// size, each of which a cache holds completely or not at all. They are as large as all reads
/// allow, and at least a cache line.
struct operand {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int element_bytes = 0;
  std::int64_t granule_rows = 1;
  std::int64_t granule_columns = 1;
  /// the number of its first granule; the granules of all operands are numbered together
  std::int64_t first_granule = 0;
  std::int64_t granules_across = 1;
  bool has_addresses = false;  ///< granules are lines, numbered by their addresses

  [[nodiscard]] double granule_bytes() const {
    return static_cast<double>(granule_rows * granule_columns * element_bytes);
  }
};

/// The steps at which a block makes an access.
enum class moment { every_step, first_step, last_step, given_step };

/// The rectangle of an operand that a block reads or writes at step 0, and its movement with each
/// step. The part outside of the operand is ignored.
struct access {
  int operand = 0;
  bool is_write = false;
  moment when = moment::every_step;
  int given_step = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
  std::int64_t row_per_step = 0;
  std::int64_t column_per_step = 0;

  bool operator==(const access&) const = default;
};

/// An axis of the grid of blocks.
struct axis {
  std::string name;
  int extent = 1;
};

/// The properties of a kernel that matter for caches: a grid of blocks, the number of steps of
/// each, and the rectangles of operands that it reads or writes at each step. It is read from a
/// small text (docs/locality.md).
class kernel {
 public:
  using sizes = std::map<std::string, double>;

  /// Reads a text. `given` replaces the sizes in it, and `line` is the length of a cache line in
  /// bytes. Throws `invalid_argument` with origin, line and the right values.
  static kernel read(std::string_view text, std::string_view origin, const sizes& given,
                     int line = 128);

  [[nodiscard]] const std::string& title() const noexcept { return title_; }
  /// The names and values of the sizes, in the order of the text.
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& all_sizes() const {
    return sizes_;
  }
  /// The axes of the grid; the last one changes first in the numbers of blocks.
  [[nodiscard]] const std::vector<axis>& axes() const noexcept { return axes_; }
  [[nodiscard]] int blocks() const noexcept { return blocks_; }
  [[nodiscard]] const std::vector<operand>& operands() const noexcept { return operands_; }
  /// The number of granules of all operands.
  [[nodiscard]] std::int64_t granules() const noexcept { return granules_; }
  /// Floating point operations of a step.
  [[nodiscard]] double flops() const noexcept { return flops_; }
  /// Blocks that run on a processor at the same time.
  [[nodiscard]] int resident() const noexcept { return resident_; }
  /// Whether blocks do not keep step, so that hits depend on which block is ahead.
  [[nodiscard]] bool drifts() const noexcept { return drifts_; }
  /// Whether caches are looked up by line, each in the channel of its address.
  [[nodiscard]] bool has_lines() const noexcept { return has_lines_; }
  /// Whether some blocks need others to have ended before.
  [[nodiscard]] bool has_dependences() const noexcept { return !after_.empty(); }

  /// The place of a block on each axis.
  [[nodiscard]] std::vector<int> coordinates(int block) const;
  /// The number of steps of a block, at least 1.
  [[nodiscard]] int steps(int block) const;
  /// Whether blocks have the same number of steps, judged by 200 of them, spread evenly from the
  /// first to the last.
  [[nodiscard]] bool has_equal_steps() const noexcept { return has_equal_steps_; }
  /// The accesses of a block.
  [[nodiscard]] std::vector<access> accesses(int block) const;
  /// The blocks that have to end before this one begins.
  [[nodiscard]] std::vector<int> needs(int block) const;

  /// The same kernel with `factor` steps in one, which is faster to simulate, if steps follow each
  /// other in memory. Otherwise it returns the kernel unchanged.
  [[nodiscard]] kernel coarsened(int factor) const;

  /// The granules of an access. If it is regular, their numbers are consecutive, as many at each
  /// step, and move by the same distance; `first` is the first one at step 0.
  struct run {
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::int64_t per_step = 0;
    bool is_regular = false;
  };
  /// The granules of an access that a block with `steps` steps makes.
  [[nodiscard]] run run_of(const access& a, int steps) const;

  /// The same kernel with all accesses computed in advance, unless there are too many. It is for
  /// repeated simulations.
  [[nodiscard]] kernel remembered() const;

  /// The part of a granule that an access touches: rows, and bytes of each row from `begin`.
  struct part {
    std::int64_t rows = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    /// The number of units of `bytes` bytes that the access touches.
    [[nodiscard]] double units(int bytes) const {
      const std::int64_t of_row = (end + bytes - 1) / bytes - begin / bytes;
      return static_cast<double>(rows * of_row);
    }
  };

  /// Calls f(granule) for each granule that an access touches at a step.
  template <class F>
  void for_granules(const access& a, int step, F&& f) const {
    for_parts(a, step, [&](std::int64_t granule, const part& /*touched*/) { f(granule); });
  }
  /// Calls f(granule, part) for each granule that an access touches at a step.
  template <class F>
  void for_parts(const access& a, int step, F&& f) const {
    const operand& o = operands_[static_cast<std::size_t>(a.operand)];
    const auto cut = [](std::int64_t begin, std::int64_t length, std::int64_t end) {
      const std::int64_t from = begin < 0 ? 0 : begin;
      const std::int64_t to = begin + length > end ? end : begin + length;
      return std::pair{from, to};
    };
    const auto [top, bottom] = cut(a.row + a.row_per_step * step, a.rows, o.rows);
    const auto [left, right] = cut(a.column + a.column_per_step * step, a.columns, o.columns);
    if (top >= bottom || left >= right) return;
    part touched;
    for (std::int64_t i = top / o.granule_rows; i <= (bottom - 1) / o.granule_rows; ++i) {
      touched.rows = std::min(bottom, (i + 1) * o.granule_rows) - std::max(top, i * o.granule_rows);
      for (std::int64_t j = left / o.granule_columns; j <= (right - 1) / o.granule_columns; ++j) {
        const std::int64_t first = j * o.granule_columns;
        touched.begin = (std::max(left, first) - first) * o.element_bytes;
        touched.end = (std::min(right, first + o.granule_columns) - first) * o.element_bytes;
        f(o.first_granule + i * o.granules_across + j, touched);
      }
    }
  }

 private:
  friend class kernel_reader;
  struct rectangle {
    int operand = 0;
    bool is_write = false;
    moment when = moment::every_step;
    int given_step = 0;
    std::vector<select::expression> bounds;  // row, rows, column, columns
  };

  [[nodiscard]] std::vector<double> values(int block, double step) const;
  void choose_granules(int line, std::string_view origin);

  std::string title_;
  std::vector<std::pair<std::string, double>> sizes_;
  std::vector<axis> axes_;
  int blocks_ = 1;
  std::optional<select::expression> steps_;
  double flops_ = 0;
  int resident_ = 1;
  bool drifts_ = false;
  bool has_lines_ = false;
  bool has_equal_steps_ = true;
  int factor_ = 1;  // steps of the text in one step of this kernel
  int line_ = 128;
  std::vector<operand> operands_;
  std::vector<rectangle> rectangles_;
  std::vector<std::vector<select::expression>> after_;
  std::int64_t granules_ = 0;
  /// The steps and accesses of all blocks, if they were computed in advance.
  struct memory {
    std::vector<int> steps;
    std::vector<access> accesses;
  };
  std::shared_ptr<const memory> memory_;
};

/// The traffic of a cache in bytes of whole granules.
struct traffic {
  double requested = 0;
  double hit = 0;
  /// The part of the requested bytes that hit.
  [[nodiscard]] double rate() const { return requested > 0 ? hit / requested : 0; }
};

}  // namespace untax::locality
