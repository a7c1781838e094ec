#include "ops/all_gather_gemm/device_reads.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "ops/common/nowhere.hpp"

namespace untax {
namespace {

/// The first and the last but one of the chunks that a range touches.
std::pair<int, int> touched(const pieces& all, const range& wanted) {
  if (wanted.empty()) return {0, 0};
  const std::int64_t first = (wanted.begin - all.whole.begin) / all.step;
  const std::int64_t last = (wanted.end() - 1 - all.whole.begin) / all.step;
  return {static_cast<int>(first), static_cast<int>(last) + 1};
}

range common(const range& x, const range& y) {
  const std::int64_t begin = std::max(x.begin, y.begin);
  return {begin, std::max<std::int64_t>(std::min(x.end(), y.end()) - begin, 0)};
}

}  // namespace

std::pair<gather_read, int> gather_reader::next_of(const gpu::cta_read& of, int k_block,
                                                   int set) const {
  const gather_segments& in = numbers_.segments;
  const int all = plan_.gemm.schedule.k_blocks;
  const auto part = in.part_of(of.a.begin, k_block, all, set, numbers_.sending.set_rows);
  gather_read read;
  read.of = of;
  const int end = std::min(part.end, of.end);
  const int next = std::max(
      k_block + 1, k_block + round_up(end - k_block, k_blocks_per_stage(plan_.gemm.config)));
  const auto segment = static_cast<std::size_t>(part.segment);
  read.waits = std::make_shared<std::vector<gather_read::ready>>();
  if (part.segment < 0 || segment >= numbers_.maps.a.size()) return {read, next};
  const bool by_k_blocks = in.rows == 0 && !numbers_.arrivals.by_rows;
  if ((by_k_blocks || in.rows > 0) && segment >= numbers_.maps.b_or_c.size()) return {read, next};
  const gpu::matrix_at& a = numbers_.maps.a[segment];
  const gpu::matrix_at& b = by_k_blocks ? numbers_.maps.b_or_c[segment] : numbers_.maps.b;
  const gpu::matrix_at& c = in.rows > 0 ? numbers_.maps.b_or_c[segment] : numbers_.maps.c;
  const std::int64_t column = std::int64_t{k_block - part.first} * gpu::block_k;
  const std::int64_t past = std::int64_t{end - part.first} * gpu::block_k;
  const place weights = gather_numbers::at(b.data, problem_, how_);
  const place result = gather_numbers::at(c.data, problem_, how_);
  const std::int64_t c_row = in.row_of_result(of.a.begin);
  read.rows = {result.row + c_row, std::clamp<std::int64_t>(c.rows - c_row, 0, of.a.count)};
  read.weights = b.rows;
  // What lies beyond either matrix is zero, in both.
  const std::int64_t there = std::min({past, a.columns, b.columns});
  read.depth = {weights.col + column, std::max<std::int64_t>(there - column, 0)};
  const auto* const first =
      static_cast<const std::byte*>(a.data) + (part.row * a.stride + column) * 2;
  if (!read.rows.empty() && !read.depth.empty())
    read.from = gather_numbers::at(first, problem_, how_);
  add_waits(read, part.first, k_block, end, set);
  return {read, next};
}

int gather_reader::source_of(int counter, int set) const {
  if (how_.pulls()) return how_.rank();
  for (int source = 0; source < how_.world(); ++source) {
    const int index = counter - how_.ready_counter(set, source, 0);
    if (index >= 0 && index < how_.most_chunks()) return source;
  }
  return how_.rank();
}

range gather_reader::columns_of(const gpu::cta_read& of, const gather_read& read) const {
  return {of.b.begin, std::clamp<std::int64_t>(read.weights - of.b.begin, 0, of.b.count)};
}

void gather_reader::add_waits(gather_read& read, int first, int k_block, int end, int set) const {
  const gpu::cta_read& of = read.of;
  const std::int64_t begin_of_map = read.depth.begin - std::int64_t{k_block - first} * gpu::block_k;
  const auto depth_at = [&](int block) {
    return std::min(begin_of_map + std::int64_t{block - first} * gpu::block_k, read.depth.end());
  };
  const auto made = std::make_shared<std::vector<gather_read::ready>>();
  auto& waits = *made;
  read.waits = made;
  if (plan_.protocol.senders_acquire) {
    waits.push_back({read.depth.end(), {}});
    return;
  }
  // Of y each CTA of a cluster waits for its share, and all of them multiply with it.
  const int shares = plan_.gemm.config.swap_ab ? plan_.gemm.config.cluster : 1;
  std::map<int, std::vector<int>> by_end;
  for (int share = 0; share < shares; ++share) {
    const int row = plan_.gemm.config.swap_ab ? of.a.begin + share * plan_.gemm.multicast_rows
                                              : of.a_read.begin;
    const awaited_chunks what =
        numbers_.segments.awaited(numbers_.arrivals, set, row, of.a_read.count, k_block, end);
    if (what.rows == 0) continue;
    for (int i = 0; i < what.count(); ++i)
      by_end[what.end_of(i / what.rows + 1, end)].push_back(what.counter(i));
  }
  for (auto& [block, counters] : by_end) waits.push_back({depth_at(block), counters});
  if (waits.empty() || waits.back().depth_end < read.depth.end())
    waits.push_back({read.depth.end(), {}});
}

namespace {

class read_check {
 public:
  read_check(const all_gather_gemm_problem& problem, const gather_plan& plan,
             const all_gather_gemm_protocol& how, const gather_numbers& numbers)
      : problem_(problem), plan_(plan), how_(how), numbers_(numbers) {}

  std::vector<std::string> run() {
    const gather_reader reader(problem_, plan_, how_, numbers_);
    for (int set = 0; set < how_.sets().sets && faults_.empty(); ++set) {
      made_.clear();
      known_.clear();
      gpu::each_read(plan_.gemm, [&](const gpu::cta_read& of) {
        if (!faults_.empty()) return;
        reader.each(of, set, [&](const gather_read& read) { look(read, set); });
      });
      if (faults_.empty()) expect_all();
    }
    return faults_;
  }

 private:
  void wrong(const gather_read& read, const std::string& what) {
    if (faults_.empty())
      faults_.push_back(fmt::format("CTA {}, tile {}, k-blocks {} to {}: {}", read.of.cta,
                                    read.of.tile, read.of.begin, read.of.end, what));
  }

  void look(const gather_read& read, int set) {
    if (read.of.begin >= read.of.end) wrong(read, "has nothing to multiply");
    if (read.rows.empty() || read.columns.empty() || read.depth.empty()) return;
    made_[{read.rows.begin, read.columns.begin}].push_back(read);
    // Most tiles read what others do.
    if (!known_.insert({read.rows.begin, read.depth.begin, read.depth.size}).second) return;
    expect_place(read, set);
    expect_waits(read, set);
  }

  /// Where rows and columns of A lie that are not the rank's own: the same as for the last ones.
  void expect_place(const gather_read& read, int set) {
    const std::int64_t row = read.rows.begin;
    const std::int64_t col = read.depth.begin;
    int source = 0;
    const std::int64_t at = how_.by_rows() ? row : col;
    while (source < how_.world() && at >= how_.shard(source).end()) ++source;
    if (source == how_.world()) return wrong(read, "reads beyond A");
    const bool own = source == how_.rank() && !how_.collected();
    const range shard = how_.shard(source);
    const place wanted =
        own ? place{operand::a, how_.rank(), row - (how_.by_rows() ? shard.begin : 0),
                    col - (how_.by_rows() ? 0 : shard.begin)}
            : place{operand::inbox, how_.rank(), set * problem_.m + row, col};
    const place& from = read.from;
    if (from.of != wanted.of || from.rank != wanted.rank || from.row != wanted.row ||
        from.col != wanted.col)
      wrong(read, fmt::format("reads row {}, column {} of A at row {}, column {} instead of {}, {}",
                              row, col, from.row, from.col, wanted.row, wanted.col));
    // The rest of it goes by strides.
    const range& sharded = how_.by_rows() ? read.rows : read.depth;
    if (!how_.collected() && sharded.end() > shard.end()) wrong(read, "reads rows of two shards");
    const std::int64_t stride = own && !how_.by_rows() ? shard.size : problem_.k;
    for (const gpu::matrix_at& map : numbers_.maps.a) {
      const place begin = gather_numbers::at(map.data, problem_, how_);
      if (begin.of == from.of && map.stride != stride) wrong(read, "goes by another stride");
      if (begin.of == from.of && from.row + read.rows.size > begin.row + map.rows)
        wrong(read, "reads zeros instead of rows");
    }
  }

  /// All that others send of it has been waited for when it is multiplied, and nothing else.
  void expect_waits(const gather_read& read, int set) {
    if (plan_.protocol.senders_acquire) return;
    std::set<int> got;
    std::set<int> needed;
    std::int64_t from = read.depth.begin;
    for (const gather_read::ready& next : *read.waits) {
      got.insert(next.counters.begin(), next.counters.end());
      add_needed(needed, read.rows, {from, next.depth_end - from}, set);
      from = next.depth_end;
      if (!std::ranges::includes(got, needed))
        return wrong(read, fmt::format("does not wait for all of columns to {}", from));
    }
    if (got != needed) wrong(read, "waits for what it does not read");
  }
  void add_needed(std::set<int>& needed, const range& rows, const range& depth, int set) const {
    for (int source = 0; source < how_.world(); ++source) {
      if (source == how_.rank() && !how_.collected()) continue;
      const pieces down = how_.row_chunks(source);
      const pieces across = how_.col_chunks(source);
      const auto [row, row_end] = touched(down, common(rows, down.whole));
      const auto [col, col_end] = touched(across, common(depth, across.whole));
      for (int i = row; i < row_end; ++i)
        for (int j = col; j < col_end; ++j)
          needed.insert(how_.ready_counter(set, source, i * across.count() + j));
    }
  }

  /// Every element of C is made of all of k, once.
  void expect_all() {
    std::int64_t elements = 0;
    std::set<std::pair<std::int64_t, std::int64_t>> rows;
    std::set<std::pair<std::int64_t, std::int64_t>> columns;
    for (auto& [corner, reads] : made_) {
      std::ranges::sort(reads, {}, [](const gather_read& r) { return r.depth.begin; });
      std::int64_t next = 0;
      for (const gather_read& read : reads) {
        if (read.depth.begin != next)
          return wrong(read, fmt::format("the products from column {} of A on are left out, or "
                                         "made twice",
                                         next));
        next = read.depth.end();
        if (read.rows.size != reads.front().rows.size ||
            read.columns.size != reads.front().columns.size)
          return wrong(read, "tiles overlap");
      }
      if (next != problem_.k) return wrong(reads.back(), fmt::format("ends at {} of k", next));
      elements += reads.front().rows.size * reads.front().columns.size;
      rows.insert({reads.front().rows.begin, reads.front().rows.size});
      columns.insert({reads.front().columns.begin, reads.front().columns.size});
    }
    if (elements != problem_.m * problem_.n || made_.size() != rows.size() * columns.size())
      faults_.push_back(fmt::format("{} elements of C are made instead of {}", elements,
                                    problem_.m * problem_.n));
    for (const auto& [parts, size] :
         {std::pair{&rows, problem_.m}, std::pair{&columns, problem_.n}}) {
      std::int64_t next = 0;
      for (const auto& [begin, count] : *parts) {
        if (begin != next) faults_.push_back(fmt::format("tiles of C leave {} out", next));
        next = begin + count;
      }
      if (next != size) faults_.push_back(fmt::format("tiles of C end at {}", next));
    }
  }

  const all_gather_gemm_problem& problem_;
  const gather_plan& plan_;
  const all_gather_gemm_protocol& how_;
  const gather_numbers& numbers_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<gather_read>> made_;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> known_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> faults_of_reads(const all_gather_gemm_problem& problem,
                                         const gather_plan& plan,
                                         const all_gather_gemm_protocol& how,
                                         const gather_numbers& numbers) {
  return read_check(problem, plan, how, numbers).run();
}

}  // namespace untax
