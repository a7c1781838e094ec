#include "ops/gemm_all_scatter/lowered.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/comm/lower.hpp"
#include "engines/gpu/gemm/cta_reads.hpp"
#include "ops/common/nowhere.hpp"

namespace untax {
namespace {

using comm::transfer;

class scatter_check {
 public:
  scatter_check(const gemm_all_scatter_problem& problem, const scatter_plan& plan,
                const gemm_all_scatter_protocol& how, const scatter_lists& lists,
                const scatter_numbers& numbers)
      : problem_(problem),
        plan_(plan),
        how_(how),
        lists_(lists),
        numbers_(numbers),
        own_(sharding{problem.n, how.world(), shard_granularity}.of(how.rank())) {}

  std::vector<std::string> run() {
    expect_senders();
    if (own_.empty()) return faults_;
    expect_maps();
    if (faults_.empty()) expect_tiles();
    if (plan_.streams > 0) expect_copies();
    return faults_;
  }

 private:
  void expect(bool right, const std::string& what) {
    if (!right && faults_.size() < most_faults) faults_.push_back(what);
  }
  [[nodiscard]] bool lies(const void* data, int rank, std::int64_t row, std::int64_t col) const {
    return nowhere::address(data) ==
           nowhere::c + rank * nowhere::span + (row * problem_.n + col) * 2;
  }

  /// Each tile that a sender sends, and all that it waits for and signals.
  void expect_senders() {
    const int senders = plan_.protocol.senders;
    const int who = plan_.streams > 0 ? plan_.streams : plan_.comm_ctas + plan_.own_grid;
    if (plan_.way == scatter_way::store_to_peers) {
      expect(how_.publishers() == 1, "CTAs that send are one publisher");
      return;
    }
    expect(senders == who, fmt::format("{} senders instead of {}", who, senders));
    expect(static_cast<int>(lists_.senders.senders.size()) == senders, "lists are missing");
    if (plan_.way != scatter_way::tile_flags) return;
    const sent_tiles& sent = numbers_.sent;
    for (int i = 0; i < senders && faults_.empty(); ++i) {
      std::vector<transfer> moves;
      for (const transfer& t : lists_.senders.senders[static_cast<std::size_t>(i)])
        if (t.rows > 0) moves.push_back(t);
      const strided share{i, senders};
      const int turns = how_.world() > 1 ? sent.turns(share) : 0;
      expect(static_cast<int>(moves.size()) == turns,
             fmt::format("sender {} sends {} tiles instead of {}", i, turns, moves.size()));
      for (int turn = 0; turn < turns && faults_.empty(); ++turn) {
        const sent_tile tile = sent.at(share, turn);
        const transfer& t = moves[static_cast<std::size_t>(turn)];
        const auto col = static_cast<int>(own_.begin) + tile.column;
        expect(t.from == operand::c && t.to == operand::c && t.from_row == tile.row &&
                   t.to_row == tile.row && t.from_col == col && t.to_col == col &&
                   t.rows == tile.rows && t.cols == tile.columns && t.acquire == tile.flag &&
                   t.first_hop == 1 && t.hops == how_.world() - 1 && t.reserve >= 0 &&
                   t.credit == 0 && t.group == tile.row / warpgroup_rows(),
               fmt::format("sender {}, turn {}: sends {} x {} at {}, {}, flag {}", i, turn,
                           tile.rows, tile.columns, tile.row, col, tile.flag));
        expect_tma_tiles(tile);
      }
    }
    expect(sent.tma_tile_rows >= 1 && sent.tma_tile_rows <= sent_tiles::most_tma_tile_rows &&
               sent.tile_columns <= 256 && sent.tile_rows % sent.tma_tile_rows == 0 &&
               static_cast<int>(sent.tma_tile_bytes()) <= sent_tiles::most_tma_tile_bytes,
           "TMA tiles cannot be so large");
    if (own_.empty()) return;
    expect(static_cast<int>(numbers_.maps.tma_tiles.size()) == how_.world(), "maps are missing");
    for (const gpu::tma_tiles_at& tma_tiles : numbers_.maps.tma_tiles)
      expect(tma_tiles.tma_tile_rows == sent.tma_tile_rows &&
                 tma_tiles.tma_tile_columns == sent.tile_columns && tma_tiles.layers == 1,
             "TMA tiles have another size than their maps say");
  }
  [[nodiscard]] int warpgroup_rows() const {
    return static_cast<int>(how_.raster_rows() * plan_.protocol.tile_m);
  }
  void expect_tma_tiles(const sent_tile& tile) {
    int rows = 0;
    for (int row = 0; row < tile.rows; row += numbers_.sent.tma_tile_rows)
      rows +=
          std::min<int>(numbers_.sent.tma_tile_rows, static_cast<int>(problem_.m) - tile.row - row);
    expect(rows == tile.rows, "TMA tiles do not cover their tile");
  }

  /// Where C lies at each rank.
  void expect_maps() {
    const scatter_maps& maps = numbers_.maps;
    expect(nowhere::address(maps.b.data) == nowhere::b && maps.b.rows == own_.size &&
               maps.b.columns == problem_.k && maps.b.stride == problem_.k,
           "the map of B is another");
    expect(static_cast<int>(maps.row_splits.size()) == plan_.row_splits, "row splits are missing");
    std::int64_t next = 0;
    for (const scatter_maps::row_split& row_split : maps.row_splits) {
      expect(nowhere::address(row_split.a.data) == nowhere::a + next * problem_.k * 2 &&
                 row_split.a.columns == problem_.k && row_split.a.stride == problem_.k,
             "rows of A lie elsewhere");
      expect(lies(row_split.c.data, how_.rank(), next, own_.begin) &&
                 row_split.c.rows == row_split.a.rows && row_split.c.columns == own_.size &&
                 row_split.c.stride == problem_.n,
             "rows of C lie elsewhere");
      next += row_split.a.rows;
    }
    expect(next == problem_.m, "row splits do not cover C");
    const int copies = plan_.way == scatter_way::store_to_peers ? how_.world() : 1;
    expect(static_cast<int>(maps.copies.size()) == copies, "copies of C are missing");
    for (std::size_t hop = 0; hop < maps.copies.size(); ++hop)
      expect_copy(maps.copies[hop], static_cast<int>(hop));
    for (std::size_t hop = 0; hop < maps.tma_tiles.size(); ++hop)
      expect_copy(maps.tma_tiles[hop].first, static_cast<int>(hop));
  }
  void expect_copy(const gpu::matrix_at& c, int hop) {
    const int peer = receiver_at_hop(how_.rank(), hop, how_.world());
    const std::int64_t rows = plan_.row_splits == 1 ? problem_.m : plan_.split_rows;
    expect(lies(c.data, peer, 0, own_.begin) && c.rows == rows && c.columns == own_.size &&
               c.stride == problem_.n,
           fmt::format("the copy of C that is {} hops away lies elsewhere", hop));
  }

  /// What CTAs multiply and store: all of C once, and, where tiles are signalled, the program's
  /// tiles in its order.
  void expect_tiles() {
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::int64_t, std::int64_t>> stored;
    std::set<int> numbers;
    const gpu::gemm_plan& gemm = plan_.gemm;
    expect(std::int64_t{gemm.schedule.k_blocks} * gpu::block_k >= problem_.k, "k is not covered");
    std::int64_t first = 0;
    for (const scatter_maps::row_split& row_split : numbers_.maps.row_splits) {
      std::map<std::pair<int, int>, std::set<std::pair<int, int>>> depths;
      gpu::each_read(gemm, [&](const gpu::cta_read& of) {
        const std::int64_t rows =
            std::clamp<std::int64_t>(row_split.a.rows - of.a.begin, 0, of.a.count);
        const std::int64_t columns =
            std::clamp<std::int64_t>(own_.size - of.b.begin, 0, of.b.count);
        if (rows == 0 || columns == 0) return;
        expect(of.begin < of.end, "a CTA has nothing to multiply");
        expect(depths[{of.a.begin, of.b.begin}].insert({of.begin, of.end}).second,
               "products are made twice");
        if (!of.finishes) return;
        const std::pair corner{first + of.a.begin, std::int64_t{of.b.begin}};
        expect(stored.insert({corner, {rows, columns}}).second, "a tile of C is stored twice");
        if (plan_.way != scatter_way::local_only) expect_tile(corner, rows, columns, numbers);
      });
      for (const auto& [corner, parts] : depths) {
        int next = 0;
        for (const auto& [begin, end] : parts) {
          expect(begin == next,
                 fmt::format("k-blocks from {} on are left out, or twice there", next));
          next = end;
        }
        expect(next == gemm.schedule.k_blocks, "k-blocks are left out");
      }
      first += row_split.a.rows;
    }
    std::int64_t elements = 0;
    std::set<std::int64_t> rows;
    std::set<std::int64_t> columns;
    for (const auto& [corner, size] : stored) {
      elements += size.first * size.second;
      rows.insert(corner.first);
      columns.insert(corner.second);
    }
    expect(
        elements == problem_.m * own_.size && stored.size() == rows.size() * columns.size(),
        fmt::format("{} elements of C are stored instead of {}", elements, problem_.m * own_.size));
    if (plan_.way == scatter_way::local_only) return;
    expect(static_cast<int>(numbers.size()) == how_.tiles().count(), "tiles are missing");
    expect(plan_.parts == storing_warpgroups(gemm.config), "a tile has another number of parts");
    if (plan_.way == scatter_way::tile_flags && !gemm.config.swap_ab) expect_order();
  }
  void expect_tile(const std::pair<std::int64_t, std::int64_t>& corner, std::int64_t rows,
                   std::int64_t columns, std::set<int>& numbers) {
    const int tile = how_.tile_at(corner.first, corner.second);
    expect(numbers.insert(tile).second, "a tile of the program is stored by two");
    const tile_grid grid = how_.tiles();
    expect(tile >= 0 && tile < grid.count() && grid.rows_of(tile).begin == corner.first &&
               grid.rows_of(tile).size == rows &&
               grid.cols_of(tile).begin - own_.begin == corner.second &&
               grid.cols_of(tile).size == columns,
           fmt::format("what is stored at {}, {} is no tile of the program", corner.first,
                       corner.second));
  }
  /// Senders ask for tiles in the order in which the GEMM gives them to its CTAs.
  void expect_order() {
    const gpu::tile_schedule& order = plan_.gemm.schedule;
    const gpu::tile_config& c = plan_.gemm.config;
    int turn = 0;
    for (int tile = 0; tile < order.tiles(); ++tile) {
      for (int cta = 0; cta < c.cluster; ++cta) {
        const std::int64_t row = (order.m_of(tile) * c.cluster + cta) * std::int64_t{tile_rows(c)};
        const int index = how_.tile_at(row, order.n_of(tile) * std::int64_t{c.block_n});
        if (index >= 0) expect(how_.tile_in_turn(turn++) == index, "tiles go out in another order");
      }
    }
  }

  /// What DMA engines copy, in the order in which streams are given it.
  void expect_copies() {
    const int hops = how_.world() - 1;
    std::vector<std::size_t> next(lists_.senders.senders.size());
    for (std::size_t i = 0; i < numbers_.copies.size(); ++i) {
      const sent_row_split& copy = numbers_.copies[i];
      const auto stream = (i + 1) % next.size();
      const auto& list = lists_.senders.senders[stream];
      if (next[stream] == list.size()) return expect(false, "a DMA engine copies too much");
      const transfer& t = list[next[stream]++];
      const int peer = receiver_at_hop(how_.rank(), t.first_hop, how_.world());
      expect(t.hops == 1 && t.first_hop == static_cast<int>(i) % hops + 1 &&
                 lies(copy.from, how_.rank(), t.from_row, t.from_col) &&
                 lies(copy.to, peer, t.to_row, t.to_col) && static_cast<int>(copy.rows) == t.rows &&
                 copy.bytes == static_cast<std::size_t>(t.cols) * 2 &&
                 copy.stride == static_cast<std::size_t>(problem_.n) * 2,
             fmt::format("copy {} of DMA engines is another", i));
    }
    for (std::size_t stream = 0; stream < next.size(); ++stream)
      expect(next[stream] == lists_.senders.senders[stream].size(),
             "a DMA engine leaves copies out");
  }

  static constexpr std::size_t most_faults = 8;
  const gemm_all_scatter_problem& problem_;
  const scatter_plan& plan_;
  const gemm_all_scatter_protocol& how_;
  const scatter_lists& lists_;
  const scatter_numbers& numbers_;
  range own_;
  std::vector<std::string> faults_;
};

}  // namespace

namespace {

/// Calls `part(list, workers, program)` for each of the lists of a plan.
template <class Part>
void each_part(scatter_lists& lists, const scatter_plan& plan, const gemm_all_scatter_protocol& how,
               const Part& part) {
  using sink = program::sink;
  const auto workers = [&](int count, std::int64_t group) {
    return comm::lowered_workers{how.rank(), how.world(), count, room_sets{1}, group};
  };
  const auto of_kernel = [&](int kernel) -> comm::step_source {
    return [&how, kernel](int worker, std::uint64_t epoch, const sink& emit) {
      how.program(kernel, worker, epoch, emit);
    };
  };
  if (plan.way == scatter_way::store_to_peers) {
    part(lists.open, workers(1, 0),
         comm::step_source(
             [&](int, std::uint64_t epoch, const sink& emit) { how.open(0, epoch, emit); }));
    part(lists.close, workers(1, 0),
         comm::step_source(
             [&](int, std::uint64_t epoch, const sink& emit) { how.close(0, epoch, emit); }));
    return;
  }
  const std::int64_t group = how.tiles().count() > 0 ? how.raster_rows() * plan.protocol.tile_m : 0;
  part(lists.senders, workers(plan.protocol.senders, group), of_kernel(plan.streams > 0 ? 2 : 1));
  if (plan.streams == 0) return;
  part(lists.open, workers(1, 0), of_kernel(1));
  part(lists.close, workers(1, 0), of_kernel(3));
}

}  // namespace

scatter_lists lower_scatter(const scatter_plan& plan, const gemm_all_scatter_protocol& how) {
  scatter_lists lists;
  each_part(lists, plan, how,
            [](comm::transfer_lists& list, const comm::lowered_workers& of,
               const comm::step_source& program) { list = comm::lower(of, program); });
  return lists;
}

std::string difference(const scatter_lists& lists, const scatter_plan& plan,
                       const gemm_all_scatter_protocol& how) {
  scatter_lists looked_at = lists;
  std::string first;
  each_part(looked_at, plan, how,
            [&](const comm::transfer_lists& list, const comm::lowered_workers& of,
                const comm::step_source& program) {
              if (first.empty()) first = comm::difference(list, of, program);
            });
  return first;
}

scatter_numbers scatter_numbers::of(const gemm_all_scatter_problem& problem,
                                    const scatter_plan& plan,
                                    const gemm_all_scatter_protocol& how) {
  scatter_numbers made;
  if (plan.way == scatter_way::tile_flags) made.sent = sent_tiles::of(how);
  auto* const c =
      static_cast<std::byte*>(nowhere::pointer(nowhere::c + how.rank() * nowhere::span));
  made.maps =
      maps_of(problem, plan, how,
              {nowhere::pointer(nowhere::a), nowhere::pointer(nowhere::b), c, nowhere::span});
  if (plan.streams == 0 || how.tiles().count() == 0) return made;
  for (int row_split = 0; row_split < plan.row_splits; ++row_split) {
    for (int hop = 1; hop < how.world(); ++hop)
      made.copies.push_back(row_split_for(problem, plan, how, c, nowhere::span, row_split, hop));
  }
  return made;
}

std::vector<std::string> faults_of(const gemm_all_scatter_problem& problem,
                                   const scatter_plan& plan, const gemm_all_scatter_protocol& how,
                                   const scatter_lists& lists, const scatter_numbers& numbers) {
  return scatter_check(problem, plan, how, lists, numbers).run();
}

std::vector<std::string> faults_of(const gemm_all_scatter_problem& problem,
                                   const scatter_plan& plan) {
  const gemm_all_scatter_protocol how(problem, plan.protocol);
  return faults_of(problem, plan, how, lower_scatter(plan, how),
                   scatter_numbers::of(problem, plan, how));
}

void require_faultless(const gemm_all_scatter_problem& problem, const scatter_plan& plan) {
  const auto faults = faults_of(problem, plan);
  if (faults.empty()) return;
  throw error(errc::internal,
              fmt::format("rank {}: gemm_all_scatter: the plan does not do what its program says: "
                          "{}",
                          plan.protocol.rank, faults.front()));
}

scatter_model::scatter_model(const gemm_all_scatter_problem& asked, const scatter_plan& planned)
    : problem(asked),
      plan(planned),
      how(problem, plan.protocol),
      lists(lower_scatter(plan, how)),
      numbers(scatter_numbers::of(problem, plan, how)) {}

}  // namespace untax
