// What the blocks of a gather read and multiply, by the addresses that tensor maps give them: every
// element of C is made of all of its products, once, of the right rows of A, from where the
// protocol puts them; and what they wait for is what of that others send, and nothing else.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/all_gather_gemm/maps.hpp"
#include "ops/all_gather_gemm/segments.hpp"
#include "tests/plans/cases.hpp"
#include "tests/plans/tiles.hpp"

namespace {

using namespace untax;
using plans_test::address;
using plans_test::each_plan;
using plans_test::gather_cases;
using plans_test::operand_at;
using plans_test::planned_gather;
using plans_test::read_tile;
using plans_test::row_span;

/// Where things lie: nothing is there.
constexpr std::int64_t a_begin = std::int64_t{1} << 40;
constexpr std::int64_t b_begin = std::int64_t{2} << 40;
constexpr std::int64_t c_begin = std::int64_t{3} << 40;
constexpr std::int64_t inbox_begin = std::int64_t{4} << 40;
constexpr std::int64_t inbox_span = std::int64_t{1} << 38;

symmetric<std::byte> inbox_of(int rank) {
  return {static_cast<std::byte*>(operand_at(inbox_begin + rank * inbox_span)),
          static_cast<std::size_t>(inbox_span), rank, static_cast<std::size_t>(inbox_span)};
}

/// A gather, as its kernel sees it.
struct gather_kernel {
  explicit gather_kernel(const planned_gather& p)
      : planned(p),
        segments(gather_segments::of(p.plan, p.how)),
        arrivals(arrival_grid::of(p.how)),
        maps(maps_of(p.problem, p.plan, p.how,
                     {operand_at(a_begin), operand_at(b_begin), operand_at(c_begin)},
                     inbox_of(p.how.rank()))) {}

  [[nodiscard]] bool by_rows() const { return planned.problem.gather == gather_axis::rows; }
  /// The shard that has a row of A, or with gather = k a column of it.
  [[nodiscard]] int owner(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = by_rows() ? row : column;
    for (int source = 0; source < planned.how.world(); ++source)
      if (at >= planned.how.shard(source).begin && at < planned.how.shard(source).end())
        return source;
    return -1;
  }
  /// Where the rank reads an element of A, by the protocol.
  [[nodiscard]] std::int64_t element_at(std::int64_t row, std::int64_t column, int set) const {
    const int source = owner(row, column);
    const auto& [m, n, k, type, gather] = planned.problem;
    if (source == planned.how.rank() && !planned.how.collected()) {
      const range part = planned.how.shard(source);
      return by_rows() ? a_begin + ((row - part.begin) * k + column) * 2
                       : a_begin + (row * part.size + column - part.begin) * 2;
    }
    return inbox_begin + planned.how.rank() * inbox_span + ((set * m + row) * k + column) * 2;
  }

  const planned_gather& planned;
  gather_segments segments;
  arrival_grid arrivals;
  gather_maps maps;
};

/// What of a work's slices lies in one place: rows of A and columns of it, as the maps have it.
struct product {
  range rows;     // of C
  range columns;  // of C
  range depth;    // of k
};

/// Checks that slices of some rows of A and of B multiply what their result says, and says what
/// that is.
void expect_product(const gather_kernel& kernel, const row_span& rows_of_a, int slice, int end,
                    int set, product& made) {
  const auto& [m, n, k, type, gather] = kernel.planned.problem;
  const gather_segments& in = kernel.segments;
  const auto part = in.part_of(rows_of_a.begin, slice, kernel.planned.plan.gemm.schedule.slices,
                               set, static_cast<int>(m));
  const auto segment = static_cast<std::size_t>(part.segment);
  ASSERT_LT(segment, kernel.maps.a.size());
  const bool by_slices = in.rows == 0 && !kernel.by_rows();
  const sm90::matrix_at& a = kernel.maps.a[segment];
  const sm90::matrix_at& b = by_slices ? kernel.maps.b_or_c[segment] : kernel.maps.b;
  const sm90::matrix_at& c = in.rows > 0 ? kernel.maps.b_or_c[segment] : kernel.maps.c;
  ASSERT_EQ(a.stride % 8, 0);
  const std::int64_t column = std::int64_t{slice - part.first} * sm90::slice_depth;
  const std::int64_t past = std::int64_t{end - part.first} * sm90::slice_depth;
  ASSERT_EQ(a.columns, b.columns) << "what is beyond one is not beyond the other";
  made.depth = {0, std::max<std::int64_t>(std::min(past, a.columns) - column, 0)};
  // The result: rows of the map of C from here on, as many as it has.
  const std::int64_t c_row = in.row_of_result(rows_of_a.begin);
  made.rows = {0, std::clamp<std::int64_t>(c.rows - c_row, 0, rows_of_a.count)};
  ASSERT_EQ(c.stride, n);
  ASSERT_EQ(c.columns, n);
  ASSERT_EQ(b.rows, n);
  if (made.rows.empty() || made.depth.empty()) return;
  const std::int64_t first = (address(c.data) - c_begin) / 2 + c_row * n;
  ASSERT_EQ(first % n, 0);
  made.rows.begin = first / n;
  const std::int64_t weights = (address(b.data) - b_begin) / 2;
  ASSERT_EQ(b.stride, k);
  ASSERT_LT(weights, k) << "rows of B are those of columns of C";
  made.depth.begin = weights + column;
  // Both ends of both: what lies between goes by strides.
  for (const std::int64_t row : {std::int64_t{0}, made.rows.size - 1}) {
    ASSERT_LT(part.row + row, a.rows) << "zeros instead of a row";
    for (const std::int64_t at : {std::int64_t{0}, made.depth.size - 1}) {
      const std::int64_t there = address(a.data) + ((part.row + row) * a.stride + column + at) * 2;
      ASSERT_EQ(there, kernel.element_at(made.rows.begin + row, made.depth.begin + at, set))
          << "row " << row << " of " << made.rows.begin << ", column " << at << " of "
          << made.depth.begin;
    }
  }
  ASSERT_EQ(in.is_own(part.segment),
            kernel.owner(made.rows.begin, made.depth.begin) == kernel.planned.how.rank() &&
                !kernel.planned.how.collected());
}

/// Adds the numbers of the pieces that a range touches.
struct touched_pieces {
  touched_pieces(const pieces& all, const range& wanted) {
    if (wanted.empty()) return;
    // They follow each other: the first one that does not end before is near where it would be if
    // all were as long.
    while (first < all.count() && all.at(first).end() <= wanted.begin)
      first += std::max<int>(static_cast<int>((wanted.begin - all.at(first).end()) / all.step), 1);
    for (end = first; end < all.count() && all.at(end).begin < wanted.end();) ++end;
  }
  int first = 0;
  int end = 0;
};

/// What of A others send of a product, by the pieces of all of them.
std::vector<int> pieces_of(const gather_kernel& kernel, const range& rows, const range& depth,
                           int set) {
  const all_gather_gemm_protocol& how = kernel.planned.how;
  std::vector<int> counters;
  for (int source = 0; source < how.world(); ++source) {
    if (source == how.rank() && !how.collected()) continue;
    const touched_pieces down(how.row_pieces(source), rows);
    const touched_pieces across(how.col_pieces(source), depth);
    const int in_row = how.col_pieces(source).count();
    for (int row = down.first; row < down.end; ++row)
      for (int column = across.first; column < across.end; ++column)
        counters.push_back(how.ready_counter(set, source, row * in_row + column));
  }
  std::ranges::sort(counters);
  return counters;
}

/// What slices from `begin` on wait for, of a stretch from `slice` to `end`, and how far they get
/// with part of that.
void expect_awaited(const gather_kernel& kernel, const row_span& rows, const product& made,
                    int slice, int begin, int end, int set) {
  const awaited_pieces what =
      kernel.segments.awaited(kernel.arrivals, set, rows.begin, rows.count, begin, end);
  const auto wanted = [&](int first, int past) {
    const std::int64_t from = std::int64_t{first - slice} * sm90::slice_depth;
    const std::int64_t to =
        std::min(std::int64_t{past - slice} * sm90::slice_depth, made.depth.size);
    if (to <= from) return std::vector<int>();
    return pieces_of(kernel, made.rows, {made.depth.begin + from, to - from}, set);
  };
  std::vector<int> listed;
  for (int i = 0; i < what.count(); ++i) {
    listed.push_back(what.counter(i));
    const int source = kernel.segments.sender_of(kernel.arrivals, what, i, begin);
    const int index = listed.back() - kernel.planned.how.ready_counter(set, source, 0);
    ASSERT_GE(index, 0) << "not sent by " << source;
    ASSERT_LT(index, kernel.planned.how.pieces_of(source));
  }
  std::vector<int> sorted = listed;
  std::ranges::sort(sorted);
  // Where a stretch ends with slices beyond a shard, these wait for what is before them.
  const bool beyond = std::int64_t{begin - slice} * sm90::slice_depth >= made.depth.size;
  if (!beyond || made.rows.empty()) {
    ASSERT_EQ(sorted, wanted(begin, end)) << "from slice " << begin;
  }
  if (what.rows == 0) return;
  ASSERT_EQ(what.end_of(what.columns, end), end);
  int from = begin;
  for (int columns = 1; columns <= what.columns; ++columns) {
    const int to = what.end_of(columns, end);
    ASSERT_GT(to, from);
    ASSERT_LE(to, end);
    std::vector<int> there(listed.begin() + (columns - 1) * what.rows,
                           listed.begin() + columns * what.rows);
    std::ranges::sort(there);
    ASSERT_TRUE(beyond || there == wanted(from, to)) << "slices " << from << " to " << to;
    from = to;
  }
}

/// What is multiplied is all of C, once: by tile what was multiplied for it.
using tile_products = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<product>>;

void expect_all(const planned_gather& p, const tile_products& made) {
  std::int64_t elements = 0;
  std::set<std::pair<std::int64_t, std::int64_t>> rows;
  std::set<std::pair<std::int64_t, std::int64_t>> columns;
  for (const auto& [corner, all] : made) {
    std::vector<std::pair<std::int64_t, std::int64_t>> depths;
    for (const product& one : all) {
      ASSERT_EQ(one.rows.begin, corner.first);
      ASSERT_EQ(one.rows.size, all.front().rows.size);
      ASSERT_EQ(one.columns.size, all.front().columns.size);
      depths.emplace_back(one.depth.begin, one.depth.size);
    }
    std::ranges::sort(depths);
    std::int64_t next = 0;
    for (const auto& [begin, size] : depths) {
      ASSERT_EQ(begin, next) << "row " << corner.first << ", column " << corner.second;
      next += size;
    }
    ASSERT_EQ(next, p.problem.k);
    elements += all.front().rows.size * all.front().columns.size;
    rows.insert({all.front().rows.begin, all.front().rows.size});
    columns.insert({all.front().columns.begin, all.front().columns.size});
  }
  ASSERT_EQ(elements, p.problem.m * p.problem.n);
  ASSERT_EQ(made.size(), rows.size() * columns.size());
  std::int64_t next = 0;
  for (const auto& [begin, size] : rows) {
    ASSERT_EQ(begin, next);
    next += size;
  }
  ASSERT_EQ(next, p.problem.m);
}

void expect_sound(const planned_gather& p, int set) {
  const gather_kernel kernel(p);
  const int slices = p.plan.gemm.schedule.slices;
  tile_products made;
  // By first row and how many, and by slices: most tiles read what others do.
  std::map<std::tuple<int, int, int, int>, product> known;
  const auto product_of = [&](const row_span& rows, int slice, int end) {
    const auto [at, is_new] = known.try_emplace({rows.begin, rows.count, slice, end});
    if (is_new) expect_product(kernel, rows, slice, end, set, at->second);
    return at->second;
  };
  std::set<std::tuple<int, int, int, int>> waited;
  plans_test::each_read(p.plan.gemm, [&](const read_tile& tile) {
    if (testing::Test::HasFatalFailure()) return;
    const range columns{tile.b.begin,
                        std::clamp<std::int64_t>(p.problem.n - tile.b.begin, 0, tile.b.count)};
    for (int slice = tile.begin; slice < tile.end;) {
      const auto part = kernel.segments.part_of(tile.a_read.begin, slice, slices, set, 0);
      ASSERT_GT(part.end, slice);
      const int end = std::min(part.end, tile.end);
      product one = product_of(tile.a, slice, end);
      one.columns = columns;
      if (!one.rows.empty() && !one.depth.empty() && !one.columns.empty())
        made[{one.rows.begin, one.columns.begin}].push_back(one);
      if (!p.plan.packets &&
          waited.insert({tile.a_read.begin, tile.a_read.count, slice, end}).second) {
        const product read = product_of(tile.a_read, slice, end);
        for (const int begin : std::set<int>{slice, slice + 1, (slice + end) / 2, end - 1})
          if (begin < end) expect_awaited(kernel, tile.a_read, read, slice, begin, end, set);
      }
      // The loader goes on by whole stages.
      slice += round_up(end - slice, stage_slices(p.plan.gemm.config));
    }
  });
  expect_all(p, made);
}

TEST(gathers_read, all_products_once_of_what_has_come) {
  each_plan(gather_cases(), [](const planned_gather& p) {
    if (testing::Test::HasFatalFailure()) return;
    SCOPED_TRACE(p.text);
    for (int set = 0; set < p.how.sets().sets; ++set) expect_sound(p, set);
  });
}

}  // namespace
