// How the fused operators are cut for GPUs, without one: every rank plans the same symmetric
// memory, pieces begin at 16 bytes and cover what is gathered, and a tile asks for the pieces that
// it reads.
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "ops/all_gather_gemm/arrivals.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/gather_at_once.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/all_gather_gemm/sending.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"
#include "ops/gemm_all_scatter/sent_tiles.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using plans_test::own_patterns;
using plans_test::processors;

class numbers {
 public:
  explicit numbers(unsigned seed) : engine_(seed) {}
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }

 private:
  std::mt19937_64 engine_;
};

/// What somebody may ask for: mostly nothing.
operator_options some_options(pattern how, numbers& number) {
  operator_options options;
  options.how = how;
  const auto some = [&] {
    return static_cast<int>(number(1, number(0, 1) == 0 ? 4 : 2 * processors));
  };
  if (number(0, 3) == 0) options.workers = some();
  if (number(0, 3) == 0) options.movers = some();
  return options;
}

/// The plans that `make` makes; none where it refuses, which it does only if it may take one block,
/// and there are clusters of two.
template <class Make>
auto plans_or_none(const Make& make, const operator_options& options, std::int64_t rows) {
  try {
    return make();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported) << e.what();
    EXPECT_NE(std::string(e.what()).find("2 would do"), std::string::npos) << e.what();
    EXPECT_EQ(options.workers, 1);
    EXPECT_GT(rows, 64);
    return decltype(make()){};
  }
}

/// Blocks that wait for each other, or for other ranks, are there at the same time.
template <class Plan>
void expect_place(const Plan& plan, pattern how) {
  const bool beside = how == pattern::producer_consumer;
  EXPECT_EQ(plan.leading % cluster_blocks(plan.gemm.config), 0);
  EXPECT_LE(plan.leading + plan.gemm.blocks() + (beside ? plan.apart : 0), processors);
  EXPECT_LE(plan.apart, processors);
}

/// The counters of the pieces that a rectangle of A touches, by looking at all of them.
std::set<int> touched(const all_gather_gemm_protocol& how, int source, range rows, range cols,
                      int set) {
  std::set<int> found;
  for (int i = 0; i < how.pieces_of(source); ++i) {
    const auto p = how.piece_at(source, i);
    const bool apart = p.rows.begin >= rows.end() || rows.begin >= p.rows.end() ||
                       p.cols.begin >= cols.end() || cols.begin >= p.cols.end();
    if (!apart) found.insert(how.ready_counter(set, source, i));
  }
  return found;
}

/// What the kernel computes in 32 bits is what the layout says.
void expect_arrivals(const all_gather_gemm_problem& problem, const all_gather_gemm_protocol& how,
                     numbers& number) {
  const arrival_grid grid = arrival_grid::of(how);
  const bool by_rows = how.by_rows();
  const auto source = static_cast<int>(number(0, how.last_source()));
  const auto slices_of = [](std::int64_t columns) {
    return static_cast<int>(ceil_div<std::int64_t>(columns, sm90::slice_depth));
  };
  const int slices = slices_of(by_rows ? problem.k : how.shard(source).size);
  const auto slice = static_cast<int>(number(0, slices - 1));
  const auto slice_end = static_cast<int>(number(slice + 1, slices));
  const auto row = static_cast<int>(number(0, problem.m - 1));
  const auto rows = static_cast<int>(number(1, 256));
  const auto set = static_cast<int>(number(0, how.sets().sets - 1));
  const awaited_pieces what = grid.touched(set, source, row, row + rows, slice, slice_end);
  const range columns{(by_rows ? 0 : how.shard(source).begin) + slice * sm90::slice_depth,
                      (slice_end - slice) * sm90::slice_depth};
  // With gather = k, slices end with the shard.
  const range within{
      columns.begin,
      std::min(columns.end(), by_rows ? problem.k : how.shard(source).end()) - columns.begin};
  std::set<int> wanted;
  for (int from = by_rows ? 0 : source; from <= (by_rows ? how.last_source() : source); ++from)
    wanted.merge(touched(how, from, {row, rows}, within, set));
  std::set<int> listed;
  for (int i = 0; i < what.count(); ++i) listed.insert(what.counter(i));
  ASSERT_EQ(listed, wanted);
  ASSERT_LE(what.begin, slice);
  ASSERT_GT(what.end_of(1, slice_end), slice);
  ASSERT_EQ(what.end_of(what.columns, slice_end), slice_end);
}

/// What movers send by plain numbers is what the program says, in the same order.
void expect_sending(const all_gather_gemm_protocol& how, int movers) {
  if (how.pulls()) return;
  const sending_grid grid = sending_grid::of(how);
  for (const int mover : {0, movers / 2, movers - 1}) {
    for (const std::uint64_t epoch : {std::uint64_t{1}, std::uint64_t{4}}) {
      const int set = how.sets().set_of(epoch);
      std::vector<std::string> said;
      how.push({mover, movers}, epoch, [&](const step& s) {
        const std::int64_t inbox = s.to.row * how.inbox().cols + s.to.col;
        said.push_back(fmt::format("{} x {} at {}, {} to {} at {}, {}, {}", s.rows, s.cols,
                                   s.from.row, s.from.col, s.to.rank, inbox, s.publish.ready,
                                   s.reserve.free >= 0 ? s.reserve.free : -1));
      });
      std::vector<std::string> sent;
      int turn = 0;
      const auto send = [&](const outgoing_piece& p, int hop, int hops) {
        const auto same = grid.turn({mover, movers}, turn++);
        ASSERT_EQ(same.piece.index, p.index);
        ASSERT_EQ(same.hop, hop);
        ASSERT_EQ(grid.hops_together(), hops);
        for (int i = 0; i < hops; ++i) {
          const int peer = receiver_at_hop(how.rank(), hop + i, how.world());
          const std::int64_t row = grid.inbox_row + std::int64_t{set} * grid.set_rows + p.row;
          const std::int64_t inbox = row * how.inbox().cols + grid.inbox_column + p.column;
          sent.push_back(
              fmt::format("{} x {} at {}, {} to {} at {}, {}, {}", p.rows, p.columns, p.row,
                          p.column, peer, inbox, grid.ready_counter(set, p.index),
                          peer == how.rank() || !grid.counted ? -1 : grid.free_counter(set, peer)));
        }
      };
      grid.each(strided{mover, movers}, send);
      ASSERT_EQ(sent, said);
      ASSERT_EQ(turn, grid.turns({mover, movers}));
      sent.clear();
      turn = 0;
      grid.each(grid.part_of({mover, movers}), send);
      ASSERT_EQ(sent, said) << "the first piece known";
    }
  }
}

/// Where all of A is gathered at once, a block sends one piece, or boxes, and the blocks together
/// wait for all that comes, each piece once, and each for what its counterparts send.
void expect_gathered_at_once(const all_gather_gemm_protocol& how, const gather_plan& plan) {
  const int movers = plan.protocol.movers;
  ASSERT_LE(movers, processors);
  ASSERT_EQ(movers, plan.boxes ? plan.apart : how.most_pieces());
  ASSERT_TRUE(how.spreads());
  const receiving_grid grid = receiving_grid::of(how);
  for (const std::uint64_t epoch : {std::uint64_t{1}, std::uint64_t{4}}) {
    std::set<std::string> wanted;
    for (int hop = how.first_hop(); hop < how.world(); ++hop) {
      const int source = source_at_hop(how.rank(), hop, how.world());
      for (int i = 0; i < how.pieces_of(source); ++i) {
        const int index = how.piece_in_turn(source, i);
        wanted.insert(fmt::format("{} of {}, to {}",
                                  how.inbox_room(source, how.rank(), index, epoch).ready, source,
                                  i % movers));
      }
    }
    std::set<std::string> awaited;
    int waits = 0;
    for (int mover = 0; mover < movers; ++mover) {
      const strided share{mover, movers};
      for (int i = 0; i < grid.count(share); ++i) {
        const incoming_piece p = grid.at(share, how.sets().set_of(epoch), i);
        if (p.ready < 0) continue;
        ++waits;
        awaited.insert(fmt::format("{} of {}, to {}", p.ready, p.source, mover));
      }
    }
    ASSERT_EQ(awaited, wanted);
    ASSERT_EQ(waits, static_cast<int>(wanted.size()));
  }
}

/// Each piece goes out once.
void expect_turns(const all_gather_gemm_protocol& how, int source) {
  std::set<int> sent;
  for (int i = 0; i < how.pieces_of(source); ++i) sent.insert(how.piece_in_turn(source, i));
  ASSERT_EQ(static_cast<int>(sent.size()), how.pieces_of(source));
  ASSERT_TRUE(sent.empty() || *sent.rbegin() == how.pieces_of(source) - 1);
}

void expect_sound(const all_gather_gemm_problem& problem, const gather_plan& plan,
                  pattern pattern_of_plan, numbers& number) {
  const all_gather_gemm_protocol how(problem, plan.protocol);
  for (int source = 0; source < how.world(); ++source) {
    std::int64_t elements = 0;
    for (int i = 0; i < how.pieces_of(source); ++i) {
      const auto p = how.piece_at(source, i);
      elements += p.rows.size * p.cols.size;
      ASSERT_EQ(p.cols.begin % 8, 0);
      ASSERT_EQ(p.cols.size % 8, 0);
    }
    const bool rows = problem.gather == gather_axis::rows;
    ASSERT_EQ(elements, how.shard(source).size * (rows ? problem.k : problem.m));
    expect_turns(how, source);
  }
  for (int i = 0; i < 8; ++i) expect_arrivals(problem, how, number);
  expect_sending(how, plan.protocol.movers);
  if (pattern_of_plan == pattern::bulk_synchronous) expect_gathered_at_once(how, plan);
  if (plan.boxes) {
    const sm90::tile_config& c = plan.gemm.config;
    const bool stored = plan.who == gather_movers::storers;
    const auto room = static_cast<unsigned>(stored ? c.staging * chunk_bytes(c) : 32768);
    ASSERT_LE(sending_grid::of(how).box_bytes(), room);
  }
  const auto parts = static_cast<int>(plan.sources.size());
  if (plan.segment_rows > 0) {
    ASSERT_EQ(plan.segment_rows % tile_rows(plan.gemm.config), 0);
    ASSERT_GE(plan.segment_rows, how.shard(0).size);
    ASSERT_EQ(plan.gemm.schedule.x_tiles * plan.gemm.config.cluster * tile_rows(plan.gemm.config),
              parts * plan.segment_rows);
  }
  const sm90::tile_schedule& order = plan.gemm.schedule;
  if (problem.gather == gather_axis::k) {
    ASSERT_EQ(order.slices, parts * plan.segment_slices);
    // Blocks that share a tile all begin with what is their rank's own.
    ASSERT_EQ(order.part_slices, plan.segment_slices);
  }
  if (plan.gemm.config.pieces > 1) {
    ASSERT_EQ(order.clusters, order.tiles());
    ASSERT_EQ(order.part_slices % order.together, 0);
    ASSERT_GE(order.part_slices, plan.gemm.config.pieces * order.together);
  }
}

TEST(operator_plans, gathers_are_sound_and_the_same_at_all_ranks) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  numbers number(seed);
  for (int round = 0; round < 200; ++round) {
    const all_gather_gemm_problem problem{
        .m = number(1, number(0, 1) == 0 ? 300 : 9000),
        .n = 8 * number(1, 1125),
        .k = 8 * number(1, 1125),
        .gather = number(0, 1) == 0 ? gather_axis::rows : gather_axis::k};
    const auto world = static_cast<int>(number(1, 8));
    operator_options options = some_options(own_patterns[number(0, 5)], number);
    options.move = number(0, 1) == 0 ? direction::push : direction::pull;
    SCOPED_TRACE(fmt::format("{} x {} x {}, gather {}, {} ranks, {}, {} workers, {} movers",
                             problem.m, problem.n, problem.k, name_of(problem.gather), world,
                             name_of(options.how), options.workers, options.movers));
    std::set<int> counters;
    std::set<std::int64_t> inboxes;
    for (int rank = 0; rank < world; ++rank) {
      const auto plans =
          plans_or_none([&] { return gather_plans(problem, world, rank, options, processors); },
                        options, problem.m);
      if (plans.empty()) continue;
      expect_place(plans.front(), options.how);
      expect_sound(problem, plans.front(), options.how, number);
      const all_gather_gemm_protocol how(problem, plans.front().protocol);
      counters.insert(how.counters());
      inboxes.insert(how.inbox().rows * how.inbox().cols + how.outbox().rows * how.outbox().cols);
    }
    EXPECT_LE(counters.size(), 1U);
    EXPECT_LE(inboxes.size(), 1U);
  }
}

/// Each tile goes out once.
void expect_turns(const gemm_all_scatter_protocol& how) {
  std::set<int> sent;
  const int count = how.tiles().count();
  for (int turn = 0; turn < count; ++turn) sent.insert(how.tile_in_turn(turn));
  ASSERT_EQ(static_cast<int>(sent.size()), count);
  if (count > 0) {
    ASSERT_EQ(*sent.begin(), 0);
    ASSERT_EQ(*sent.rbegin(), count - 1);
  }
}

/// Movers ask for tiles in the order in which the GEMM deals them to its blocks: see
/// tile_schedule.
void expect_order(const gemm_all_scatter_protocol& how, const sm90::gemm_plan& gemm) {
  if (gemm.config.swapped) return;
  const sm90::tile_schedule& order = gemm.schedule;
  const int count = how.tiles().count();
  std::vector<int> finished(static_cast<std::size_t>(count), -1);
  int next = 0;
  for (int tile = 0; tile < order.tiles(); ++tile) {
    for (int block = 0; block < gemm.config.cluster; ++block) {
      const std::int64_t row = (order.x_of(tile) * gemm.config.cluster + block) *
                               static_cast<std::int64_t>(tile_rows(gemm.config));
      const int index = how.tile_at(row, order.y_of(tile) * std::int64_t{gemm.config.columns});
      if (index >= 0) finished[static_cast<std::size_t>(index)] = next++;
    }
  }
  ASSERT_EQ(next, count);
  for (int turn = 0; turn < count; ++turn)
    ASSERT_EQ(finished[static_cast<std::size_t>(how.tile_in_turn(turn))], turn);
}

/// What movers send by plain numbers is what the program says, in the same order, and boxes cover
/// it.
void expect_sent_tiles(const gemm_all_scatter_protocol& how, int movers) {
  const sent_tiles grid = sent_tiles::of(how);
  ASSERT_GE(grid.box_rows, 1);
  ASSERT_LE(grid.box_rows, sent_tiles::most_box_rows);
  ASSERT_EQ(grid.tile_rows % grid.box_rows, 0) << "a box reaches into the tile below";
  ASSERT_LE(grid.tile_columns, 256);
  ASSERT_LE(grid.box_bytes(), std::uint32_t{sent_tiles::most_box_bytes});
  const std::int64_t begin = how.tiles().cols.whole.begin;
  for (const int mover : {0, movers / 2, movers - 1}) {
    const strided share{mover, movers};
    std::vector<std::string> said;
    how.scatter(share, 3, [&](const step& s) {
      if (s.acquire.named())
        said.push_back(fmt::format("{} in {}", s.acquire.ready, s.acquire.use));
      if (s.what == action::none) return;
      said.push_back(fmt::format("{} x {} at {}, {} to {} at {}, {}", s.rows, s.cols, s.from.row,
                                 s.from.col - begin, s.to.rank, s.to.row, s.to.col - begin));
    });
    std::vector<std::string> sent;
    for (int turn = 0; turn < grid.turns(share); ++turn) {
      const sent_tile tile = grid.at(share, turn);
      sent.push_back(fmt::format("{} in 3", tile.flag));
      for (int hop = 1; hop < how.world(); ++hop) {
        const int peer = receiver_at_hop(how.rank(), hop, how.world());
        sent.push_back(fmt::format("{} x {} at {}, {} to {} at {}, {}", tile.rows, tile.columns,
                                   tile.row, tile.column, peer, tile.row, tile.column));
      }
    }
    ASSERT_EQ(sent, said);
  }
}

TEST(operator_plans, scatters_are_the_same_at_all_ranks) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  numbers number(seed);
  for (int round = 0; round < 200; ++round) {
    const gemm_all_scatter_problem problem{number(1, number(0, 1) == 0 ? 300 : 9000),
                                           8 * number(1, 1125), 8 * number(1, 1125)};
    const auto world = static_cast<int>(number(1, 8));
    const operator_options options = some_options(own_patterns[number(0, 5)], number);
    SCOPED_TRACE(fmt::format("{} x {} x {}, {} ranks, {}, {} workers, {} movers", problem.m,
                             problem.n, problem.k, world, name_of(options.how), options.workers,
                             options.movers));
    std::set<int> counters;
    std::set<std::string> texts;
    for (int rank = 0; rank < world; ++rank) {
      const auto plans =
          plans_or_none([&] { return scatter_plans(problem, world, rank, options, processors); },
                        options, problem.m);
      if (plans.empty()) continue;
      expect_place(plans.front(), options.how);
      const gemm_all_scatter_protocol how(problem, plans.front().protocol);
      counters.insert(how.counters());
      texts.insert(plans.front().text());
      if (options.how == pattern::bulk_synchronous) {
        EXPECT_LE(how.tiles().count(), plans.front().apart);
      }
      expect_turns(how);
      if (plans.front().way == scatter_way::flagged) {
        EXPECT_EQ(plans.front().protocol.movers % 2, 0);
        expect_sent_tiles(how, plans.front().protocol.movers);
        expect_order(how, plans.front().gemm);
      }
      // What a block stores, or sends, is a tile of the protocol.
      const tile_grid tiles = how.tiles();
      for (int tile = 0; tile < tiles.count(); ++tile) {
        const range cols = tiles.cols_of(tile);
        ASSERT_EQ(how.tile_at(tiles.rows_of(tile).begin, cols.begin - tiles.cols.whole.begin),
                  tile);
      }
    }
    EXPECT_LE(counters.size(), 1U);
    EXPECT_LE(texts.size(), 1U);
  }
}

}  // namespace
