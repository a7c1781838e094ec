#include "src/locality/footprint.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "src/locality/pieces.hpp"
#include "src/locality/runs.hpp"

namespace untax::locality {
namespace {

/// The size of a rectangle in rows or columns, and its movement along axes and steps.
struct line {
  std::int64_t size = 0;
  std::vector<std::pair<std::int64_t, int>> moves;  // distance, and number of positions

  /// The part of the size in which rectangles at different positions are disjoint; 0 if there is
  /// none.
  [[nodiscard]] std::int64_t own() const {
    auto sorted = moves;
    std::sort(sorted.begin(), sorted.end());
    const std::int64_t part = sorted.empty() ? size : std::min(size, sorted.front().first);
    std::int64_t reach = part;
    for (const auto& [by, places] : sorted) {
      if (by < reach) return 0;
      reach += by * (places - 1);
    }
    return part;
  }
};

std::vector<int> blocks_to_look_at(const kernel& k) {
  std::vector<int> result;
  if (k.blocks() <= 65536) {
    for (int i = 0; i < k.blocks(); ++i) result.push_back(i);
    return result;
  }
  for (int i = 0; i < 8192; ++i)
    result.push_back(static_cast<int>(std::int64_t{k.blocks() - 1} * i / 8191));
  // The corners of the grid, at which rectangles may reach beyond the operand.
  for (unsigned corner = 0; corner < (1U << k.axes().size()); ++corner) {
    int block = 0;
    for (std::size_t i = 0; i < k.axes().size(); ++i)
      block = block * k.axes()[i].extent + ((corner >> i) % 2 != 0 ? k.axes()[i].extent - 1 : 0);
    result.push_back(block);
  }
  return result;
}

std::int64_t cut(std::int64_t begin, std::int64_t length, std::int64_t end) {
  return std::max<std::int64_t>(0,
                                std::min(begin + length, end) - std::max<std::int64_t>(0, begin));
}

}  // namespace

footprint::footprint(const kernel& k, const device& d) {
  for (const axis& a : k.axes()) extents_.push_back(a.extent);
  least_steps_ = k.steps(0);
  for (const int block : blocks_to_look_at(k))
    least_steps_ = std::min(least_steps_, k.steps(block));
  count(k, d);
  // If an operand has several accesses, only the term with the most bytes counts.
  std::map<int, term> best;
  const std::vector<access> accesses = k.accesses(0);
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    term t = term_of(k, i);
    t.bytes = without_given(k, d, i, t.bytes);
    const auto [at, is_new] = best.try_emplace(accesses[i].operand, t);
    const auto size = [&](const term& summand) {
      double total = summand.bytes * summand.steps;
      for (std::size_t a = 0; a < extents_.size(); ++a)
        total *= (summand.axes >> a) % 2 != 0 ? extents_[a] : 1;
      return total;
    };
    if (!is_new && size(t) > size(at->second)) at->second = t;
  }
  for (const auto& [operand, t] : best) terms_.push_back(t);
}

/// Memory sends pairs of sectors. At both edges of a row of a rectangle, one sector may be
/// requested without its partner, which then comes for free. If rectangles of several kinds meet,
/// this may hold for half of all bytes.
double footprint::without_given(const kernel& k, const device& d, std::size_t number,
                                double bytes) const {
  const std::vector<access> accesses = k.accesses(0);
  const operand& o = k.operands()[static_cast<std::size_t>(accesses[number].operand)];
  if (!comes_in_pairs(o, d)) return bytes;
  int kinds = 0;
  int reads = 0;
  for (const access& a : accesses) {
    if (a.operand != accesses[number].operand) continue;
    ++kinds;
    if (!a.is_write) ++reads;
  }
  if (reads == 0) return bytes;
  if (kinds > 1) return bytes / 2;
  const auto given = static_cast<double>(2 * d.sector * accesses[number].rows);
  return std::max(bytes / 2, bytes - given);
}

void footprint::count(const kernel& k, const device& d) {
  std::vector<bool> seen(static_cast<std::size_t>(k.granules()));
  std::vector<bool> alone(seen.size());  // read without its partner in the pair
  std::vector<double> distinct(k.operands().size());
  std::vector<bool> is_of_steps(k.operands().size());
  using place = std::tuple<int, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::map<place, int> done;  // number of steps of a rectangle that were visited
  std::map<std::pair<place, int>, double> bytes_of;
  for (int block = 0; block < k.blocks(); ++block) {
    const int steps = k.steps(block);
    steps_ += steps;
    for (const access& a : k.accesses(block)) {
      const auto operand = static_cast<std::size_t>(a.operand);
      const double bytes = k.operands()[operand].granule_bytes();
      const bool moves = a.row_per_step != 0 || a.column_per_step != 0;
      const int each = a.when == moment::every_step && moves ? steps : 1;
      const double again = a.when == moment::every_step && !moves ? steps : 1;
      if (each > 1) is_of_steps[operand] = true;
      const place where{a.operand, a.is_write, a.row, a.rows, a.column, a.columns};
      double& asked = bytes_of[{where, each}];
      if (asked == 0) {
        for (int step = 0; step < each; ++step)
          k.for_granules(a, step, [&](std::int64_t) { asked += bytes; });
      }
      const auto& o = k.operands()[operand];
      const bool in_pairs = comes_in_pairs(o, d) && !a.is_write;
      requested_ += asked * again;
      int& looked = done[where];
      for (; looked < each; ++looked) {
        std::int64_t even = -1;  // the last granule, as long as its partner has not come
        const auto even_was_alone = [&] {
          if (even >= 0) alone[static_cast<std::size_t>(even)] = true;
          even = -1;
        };
        k.for_granules(a, looked, [&](std::int64_t granule) {
          const auto i = static_cast<std::size_t>(granule);
          if (!seen[i]) distinct[operand] += bytes;
          seen[i] = true;
          if (!in_pairs) return;
          const std::int64_t other = other_of_pair(o, granule);
          if (other == even) {
            even = -1;
            return;
          }
          even_was_alone();
          if (other < granule) alone[i] = true;
          if (other > granule) even = granule;
        });
        even_was_alone();
      }
    }
  }
  for (std::size_t i = 0; i < distinct.size(); ++i) {
    const operand& o = k.operands()[i];
    if (comes_in_pairs(o, d)) {
      const auto first = static_cast<std::size_t>(o.first_granule);
      const std::size_t end = i + 1 < distinct.size()
                                  ? static_cast<std::size_t>(k.operands()[i + 1].first_granule)
                                  : seen.size();
      for (std::size_t even = first; even < end; even += 2) {
        const bool both = seen[even] && seen[even + 1];
        if (both && (alone[even] || alone[even + 1])) distinct[i] -= o.granule_bytes();
      }
    }
    distinct_ += distinct[i];
    if (!is_of_steps[i]) outside_steps_ += distinct[i];
  }
}

footprint::term footprint::term_of(const kernel& k, std::size_t number) const {
  const access origin = k.accesses(0)[number];
  const operand& o = k.operands()[static_cast<std::size_t>(origin.operand)];
  line rows{origin.rows, {}};
  line columns{origin.columns, {}};
  term result;
  std::vector<std::pair<std::int64_t, std::int64_t>> moves;
  bool is_even = true;
  int unit = 1;
  for (std::size_t i = extents_.size(); i-- > 0;) {
    std::pair<std::int64_t, std::int64_t> shift{0, 0};
    if (extents_[i] > 1) {
      const access next = k.accesses(unit)[number];
      shift = {next.row - origin.row, next.column - origin.column};
    }
    moves.insert(moves.begin(), shift);
    if (shift.first != 0 && shift.second != 0) is_even = false;
    if (shift.first != 0) rows.moves.emplace_back(std::abs(shift.first), extents_[i]);
    if (shift.second != 0) columns.moves.emplace_back(std::abs(shift.second), extents_[i]);
    if (shift.first != 0 || shift.second != 0) result.axes |= 1U << i;
    unit *= extents_[i];
  }
  const bool is_of_steps = origin.when == moment::every_step && least_steps_ > 1 &&
                           (origin.row_per_step != 0) != (origin.column_per_step != 0);
  if (is_of_steps && origin.row_per_step != 0)
    rows.moves.emplace_back(std::abs(origin.row_per_step), least_steps_);
  if (is_of_steps && origin.column_per_step != 0)
    columns.moves.emplace_back(std::abs(origin.column_per_step), least_steps_);
  std::int64_t own_rows = rows.own();
  std::int64_t own_columns = columns.own();
  const auto is_multiple = [&](std::int64_t a, std::int64_t b) { return a % b == 0; };
  double least = -1;
  for (const int block : blocks_to_look_at(k)) {
    const access a = k.accesses(block)[number];
    const std::vector<int> c = k.coordinates(block);
    std::int64_t row = origin.row;
    std::int64_t column = origin.column;
    for (std::size_t i = 0; i < c.size(); ++i) {
      row += moves[i].first * c[i];
      column += moves[i].second * c[i];
    }
    is_even = is_even && row == a.row && column == a.column && a.rows == origin.rows &&
              a.columns == origin.columns && a.row_per_step == origin.row_per_step &&
              a.column_per_step == origin.column_per_step;
    const int last = a.when == moment::every_step ? k.steps(block) - 1 : 0;
    const bool is_aligned =
        is_multiple(a.row, o.granule_rows) && is_multiple(a.rows, o.granule_rows) &&
        is_multiple(a.row_per_step, o.granule_rows) && is_multiple(a.column, o.granule_columns) &&
        is_multiple(a.column_per_step, o.granule_columns) &&
        (is_multiple(a.columns, o.granule_columns) || o.granules_across == 1) &&
        own_rows == a.rows && own_columns == a.columns;
    for (const int step : {0, last}) {
      double bytes = 0;
      if (is_aligned) {
        k.for_granules(a, step, [&](std::int64_t) { bytes += o.granule_bytes(); });
      } else {
        const auto height = std::max<std::int64_t>(1, own_rows);
        const auto width = std::max<std::int64_t>(1, own_columns);
        bytes = static_cast<double>(cut(a.row + a.row_per_step * step, height, o.rows) *
                                    cut(a.column + a.column_per_step * step, width, o.columns)) *
                o.element_bytes;
      }
      least = least < 0 ? bytes : std::min(least, bytes);
    }
  }
  result.bytes = std::max(0.0, least);
  if (!is_even || own_rows == 0 || own_columns == 0) {
    result.axes = 0;  // only a bound for a single block is known
  } else if (is_of_steps) {
    result.is_of_steps = true;
    result.steps = least_steps_;
  }
  return result;
}

double footprint::least(double blocks, bool is_whole) const {
  std::vector<term> terms;
  for (term t : terms_) {
    if (!is_whole && !t.is_of_steps) continue;
    t.bytes *= is_whole ? t.steps : 1;
    terms.push_back(t);
  }
  if (terms.empty()) return 0;
  // Axes on which the same terms depend are merged. Axes on which no term depends cost nothing.
  std::map<unsigned, double> extent_of;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    unsigned pattern = 0;
    for (std::size_t t = 0; t < terms.size(); ++t) pattern |= ((terms[t].axes >> i) % 2) << t;
    extent_of.try_emplace(pattern, 1).first->second *= extents_[i];
  }
  double left = blocks;
  std::vector<unsigned> groups;
  std::vector<double> extents;
  double most = 1;
  for (const auto& [pattern, extent] : extent_of) {
    if (pattern == 0) {
      left = std::max(1.0, left / extent);
    } else {
      groups.push_back(pattern);
      extents.push_back(extent);
      most *= extent;
    }
  }
  left = std::min(left, most);
  std::vector<double> sides;
  // The search ends near the minimum; its relative error is below 1e-6.
  return search(terms, sides, groups, extents, 0, left) * (1 - 1e-6);
}

double footprint::search(const std::vector<term>& terms, std::vector<double>& sides,
                         const std::vector<unsigned>& groups, const std::vector<double>& extents,
                         std::size_t group, double left) const {
  if (group + 1 >= groups.size()) {
    if (group < groups.size()) sides.push_back(left);
    double bytes = 0;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      double points = 1;
      for (std::size_t g = 0; g < groups.size(); ++g)
        points *= (groups[g] >> t) % 2 != 0 ? sides[g] : 1;
      bytes += terms[t].bytes * std::max(1.0, points);
    }
    if (group < groups.size()) sides.pop_back();
    return bytes;
  }
  // The bytes are convex in the logarithms of the sides, so a ternary search finds the minimum.
  double others = 1;
  for (std::size_t g = group + 1; g < groups.size(); ++g) others *= extents[g];
  double low = std::log(left / others);
  double high = std::log(extents[group]);
  const auto at = [&](double side) {
    sides.push_back(std::exp(side));
    const double bytes = search(terms, sides, groups, extents, group + 1, left / std::exp(side));
    sides.pop_back();
    return bytes;
  };
  for (int i = 0; i < 60 && high - low > 1e-9; ++i) {
    const double a = low + (high - low) / 3;
    const double b = high - (high - low) / 3;
    if (at(a) <= at(b)) {
      high = b;
    } else {
      low = a;
    }
  }
  return at((low + high) / 2);
}

}  // namespace untax::locality
