#include <untax/locality/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::locality {
namespace {

std::int64_t whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }

/// Operands whose lines have addresses begin at multiples of this many lines, as allocated memory
/// does.
constexpr std::int64_t aligned_lines = 16384;

/// Blocks whose accesses determine the granules: the first 64, and 191 spread up to the last.
std::vector<int> probes(int blocks) {
  std::vector<int> result;
  for (int i = 0; i < std::min(blocks, 64); ++i) result.push_back(i);
  for (int i = 1; i <= 191; ++i)
    result.push_back(static_cast<int>(static_cast<std::int64_t>(blocks - 1) * i / 191));
  return result;
}

}  // namespace

std::vector<int> kernel::coordinates(int block) const {
  std::vector<int> made(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    made[i] = block % axes_[i].extent;
    block /= axes_[i].extent;
  }
  return made;
}

std::vector<double> kernel::values(int block, double step) const {
  std::vector<double> result;
  for (const auto& [name, value] : sizes_) result.push_back(value);
  for (const int c : coordinates(block)) result.push_back(c);
  result.push_back(step);
  return result;
}

int kernel::steps(int block) const {
  if (memory_) return memory_->steps[static_cast<std::size_t>(block)];
  if (!steps_) return 1;
  const double steps = std::ceil(steps_->value(values(block, 0)) / factor_ - 1e-9);
  return steps < 1 ? 1 : static_cast<int>(std::min(steps, 1e9));
}

std::vector<access> kernel::accesses(int block) const {
  if (memory_) {
    const auto first =
        memory_->accesses.begin() + static_cast<std::ptrdiff_t>(rectangles_.size()) * block;
    return {first, first + static_cast<std::ptrdiff_t>(rectangles_.size())};
  }
  const std::vector<double> at_0 = values(block, 0);
  const std::vector<double> at_1 = values(block, 1);
  const int last = steps(block) - 1;
  std::vector<access> result;
  for (const rectangle& r : rectangles_) {
    const bool is_fixed = r.when == moment::given_step;
    const std::vector<double> at_fixed =
        is_fixed ? values(block, r.given_step) : std::vector<double>{};
    const auto bound = [&](std::size_t i, const std::vector<double>& with) {
      return whole(std::floor(r.bounds[i].value(with) + 1e-9));
    };
    access a;
    a.operand = r.operand;
    a.is_write = r.is_write;
    a.when = r.when;
    a.given_step = r.given_step;
    const std::vector<double>& at_first = is_fixed ? at_fixed : at_0;
    a.row = bound(0, at_first);
    a.rows = bound(1, at_first);
    a.column = bound(2, at_first);
    a.columns = bound(3, at_first);
    if (is_fixed) {
      if (r.given_step > last) a.rows = 0;
    } else {
      a.row_per_step = bound(0, at_1) - a.row;
      a.column_per_step = bound(2, at_1) - a.column;
    }
    if (factor_ > 1 && a.when == moment::every_step) {
      // coarsened() has checked that consecutive steps together are one rectangle.
      if (a.row_per_step != 0) a.rows *= factor_;
      if (a.column_per_step != 0) a.columns *= factor_;
      a.row_per_step *= factor_;
      a.column_per_step *= factor_;
    }
    result.push_back(a);
  }
  return result;
}

kernel::run kernel::run_of(const access& a, int steps) const {
  const operand& o = operands_[static_cast<std::size_t>(a.operand)];
  const auto last = static_cast<std::int64_t>(a.when == moment::every_step ? steps - 1 : 0);
  const std::int64_t end = a.row + a.row_per_step * last + a.rows;
  const bool is_whole_rows =
      o.granules_across == 1 && a.row >= 0 && a.rows > 0 && end <= o.rows && a.column_per_step == 0;
  const bool is_aligned = a.row % o.granule_rows == 0 && a.rows % o.granule_rows == 0 &&
                          a.row_per_step % o.granule_rows == 0 && a.row_per_step >= 0;
  if (!is_whole_rows || !is_aligned) return {};
  return {o.first_granule + a.row / o.granule_rows, a.rows / o.granule_rows,
          a.row_per_step / o.granule_rows, true};
}

std::vector<int> kernel::needs(int block) const {
  std::vector<int> result;
  const std::vector<double> with = values(block, 0);
  for (const auto& place : after_) {
    int other = 0;
    bool is_there = true;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const auto c = static_cast<int>(std::lround(place[i].value(with)));
      is_there = is_there && c >= 0 && c < axes_[i].extent;
      other = other * axes_[i].extent + c;
    }
    if (is_there && other != block) result.push_back(other);
  }
  return result;
}

kernel kernel::remembered() const {
  constexpr std::size_t most = std::size_t{1} << 22;
  if (memory_ || rectangles_.size() * static_cast<std::size_t>(blocks_) > most) return *this;
  auto parts = std::make_shared<memory>();
  for (int block = 0; block < blocks_; ++block) {
    parts->steps.push_back(steps(block));
    for (const access& a : accesses(block)) parts->accesses.push_back(a);
  }
  kernel result = *this;
  result.memory_ = std::move(parts);
  return result;
}

kernel kernel::coarsened(int factor) const {
  if (factor <= 1 || factor_ > 1 || !steps_) return *this;
  const bool has_given = std::ranges::any_of(
      rectangles_, [](const rectangle& r) { return r.when == moment::given_step; });
  if (has_given) return *this;
  for (const access& a : accesses(0)) {
    if (a.when != moment::every_step) continue;
    const bool along_rows = a.row_per_step == a.rows && a.column_per_step == 0;
    const bool along_columns = a.column_per_step == a.columns && a.row_per_step == 0;
    const bool stays = a.row_per_step == 0 && a.column_per_step == 0;
    if (!along_rows && !along_columns && !stays) return *this;
  }
  kernel result = *this;
  result.memory_.reset();
  result.factor_ = factor;
  result.flops_ = flops_ * factor;
  result.choose_granules(line_, title_);
  return result;
}

void kernel::choose_granules(int line, std::string_view origin) {
  line_ = line;
  const std::size_t count = operands_.size();
  std::vector<std::int64_t> rows(count, 0);
  std::vector<std::int64_t> columns(count, 0);
  for (const int block : probes(blocks_)) {
    for (const access& a : accesses(block)) {
      const auto i = static_cast<std::size_t>(a.operand);
      for (const std::int64_t value : {a.row, a.rows, a.row_per_step})
        rows[i] = std::gcd(rows[i], value);
      for (const std::int64_t value : {a.column, a.columns, a.column_per_step})
        columns[i] = std::gcd(columns[i], value);
    }
  }
  granules_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    operand& o = operands_[i];
    o.granule_rows = std::clamp<std::int64_t>(rows[i], 1, o.rows);
    o.granule_columns = std::clamp<std::int64_t>(columns[i], 1, o.columns);
    if (o.granule_columns == o.columns) {  // whole rows, which are contiguous in memory
      const std::int64_t least = rounded_up(line, o.columns * o.element_bytes);
      o.granule_rows = rounded_up(least, o.granule_rows) * o.granule_rows;
    } else {
      const std::int64_t least = rounded_up(line, o.element_bytes);
      o.granule_columns = rounded_up(least, o.granule_columns) * o.granule_columns;
    }
    const bool is_cut = o.rows > 1 && o.granule_columns < o.columns;
    o.has_addresses = has_lines_ && is_cut && line % o.element_bytes == 0;
    if (o.has_addresses) {
      o.granule_rows = 1;
      o.granule_columns = line / o.element_bytes;
      granules_ = rounded_up(granules_, aligned_lines) * aligned_lines;
    }
    o.granules_across = rounded_up(o.columns, o.granule_columns);
    o.first_granule = granules_;
    const std::int64_t down = rounded_up(o.rows, o.granule_rows);
    constexpr std::int64_t most = std::int64_t{1} << 27;
    // The product of two sizes need not fit in 64 bits.
    const double pieces = static_cast<double>(granules_) +
                          static_cast<double>(o.granules_across) * static_cast<double>(down);
    if (pieces > static_cast<double>(most)) {
      throw error(
          errc::invalid_argument,
          fmt::format("{}: {:.0f} pieces of operands and more than the {} that can be simulated; "
                      "take smaller sizes",
                      origin, pieces, most));
    }
    granules_ += o.granules_across * down;
  }
}

}  // namespace untax::locality
