// What a scatter's kernels multiply, store, tell of and send, by numbers and by addresses, against
// the protocol's program.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <untax/tile/order.hpp>

#include "engines/gpu/comm/sent_tiles.hpp"
#include "ops/gemm_all_scatter/maps.hpp"
#include "tests/plans/cases.hpp"
#include "tests/plans/tiles.hpp"

namespace {

using namespace untax;
using plans_test::address;
using plans_test::each_plan;
using plans_test::operand_at;
using plans_test::planned_scatter;
using plans_test::read_tile;
using plans_test::scatter_case;
using plans_test::scatter_cases;

constexpr std::uint64_t epochs = 5;
constexpr std::int64_t a_begin = std::int64_t{1} << 40;
constexpr std::int64_t b_begin = std::int64_t{2} << 40;
constexpr std::int64_t c_begin = std::int64_t{3} << 40;
constexpr std::int64_t between = std::int64_t{1} << 37;

scatter_maps maps_for(const planned_scatter& p) {
  return maps_of(p.problem, p.plan, p.how,
                 {operand_at(a_begin), operand_at(b_begin),
                  operand_at(c_begin + p.how.rank() * between), between});
}
/// The columns of C that a rank computes.
range own_columns(const planned_scatter& p) {
  return sharding{p.problem.n, p.how.world(), shard_granularity}.of(p.how.rank());
}
std::int64_t c_at(const planned_scatter& p, int rank, std::int64_t row, std::int64_t column) {
  return c_begin + rank * between + (row * p.problem.n + column) * 2;
}

TEST(scatters, ranks_plan_the_same) {
  for (const scatter_case& c : scatter_cases()) {
    for (const planned_scatter& other : c.ranks) {
      SCOPED_TRACE(other.text);
      const protocol_plan& a = c.ranks.front().plan.protocol;
      const protocol_plan& b = other.plan.protocol;
      ASSERT_EQ(b.rank, &other - c.ranks.data());
      ASSERT_EQ(b.world, static_cast<int>(c.ranks.size()));
      ASSERT_EQ(std::tie(a.how, a.workers, a.senders, a.tile_m, a.tile_n, a.raster_rows),
                std::tie(b.how, b.workers, b.senders, b.tile_m, b.tile_n, b.raster_rows));
      ASSERT_EQ(c.ranks.front().plan.text(), other.plan.text());
      ASSERT_EQ(c.ranks.front().how.counters(), other.how.counters());
      ASSERT_EQ(b.workers, 1);
    }
  }
}

/// The protocol's tile of a part of C, and who of the plan moves.
TEST(scatters, senders_are_those_of_the_plan) {
  each_plan(scatter_cases(), [](const planned_scatter& p) {
    SCOPED_TRACE(p.text);
    const scatter_plan& plan = p.plan;
    switch (p.options.how) {
      case pattern::fused_specialized:
      case pattern::producer_consumer:
        ASSERT_EQ(plan.way, scatter_way::tile_flags);
        ASSERT_EQ(plan.comm_ctas > 0, p.options.how == pattern::fused_specialized);
        ASSERT_EQ(plan.own_grid > 0, p.options.how == pattern::producer_consumer);
        ASSERT_EQ(plan.protocol.senders, plan.comm_ctas + plan.own_grid);
        ASSERT_EQ(plan.protocol.senders % 2, 0);
        break;
      case pattern::bulk_synchronous:
        ASSERT_EQ(plan.way, scatter_way::local_only);
        ASSERT_EQ(plan.protocol.senders, plan.own_grid);
        ASSERT_LE(plan.own_grid, p.num_sms);
        ASSERT_LE(p.how.tiles().count(), plan.own_grid);
        for (int turn = 0; turn < p.how.tiles().count(); ++turn)
          ASSERT_EQ(p.how.tile_in_turn(turn), turn);
        break;
      case pattern::copy_engine:
        ASSERT_EQ(plan.way, scatter_way::local_only);
        ASSERT_EQ(plan.own_grid, 0);
        ASSERT_GT(plan.streams, 0);
        // A place is left for who waits for the peers.
        ASSERT_LE(plan.gemm.blocks(), p.num_sms - 2);
        break;
      default:
        ASSERT_EQ(plan.way, scatter_way::store_to_peers);
        ASSERT_EQ(p.how.publishers(), 1) << "the blocks that multiply";
    }
    ASSERT_EQ(plan.parts, storing_warpgroups(plan.gemm.config)) << "each is stored by one thread";
    ASSERT_EQ(plan.gemm.config.cluster_split_k, 1);
  });
}

/// Of tiles, by first row and column: what part of C they are.
using stored_tiles = std::map<std::pair<std::int64_t, std::int64_t>, std::pair<range, range>>;

/// Checks what a row split's kernel reads and stores. Adds the tiles that it stores.
void expect_row_split(const planned_scatter& p, const scatter_maps& maps, std::size_t number,
                      stored_tiles& stored) {
  const auto& [m, n, k, type] = p.problem;
  const scatter_maps::row_split& row_split = maps.row_splits[number];
  const range own = own_columns(p);
  ASSERT_EQ(maps.b.columns, k);
  ASSERT_EQ(maps.b.stride, k);
  ASSERT_EQ(maps.b.rows, own.size);
  ASSERT_EQ(address(maps.b.data), b_begin);
  ASSERT_EQ(row_split.a.stride, k);
  ASSERT_EQ(row_split.a.columns, k);
  ASSERT_EQ(row_split.c.stride, n);
  ASSERT_EQ(row_split.c.columns, own.size);
  ASSERT_EQ(row_split.c.rows, row_split.a.rows);
  const std::int64_t first = (address(row_split.a.data) - a_begin) / 2 / k;
  ASSERT_EQ(address(row_split.a.data), a_begin + first * k * 2);
  ASSERT_EQ(address(row_split.c.data), c_at(p, p.how.rank(), first, own.begin));
  std::map<int, int> k_blocks;
  plans_test::each_read(p.plan.gemm, [&](const read_tile& tile) {
    const std::int64_t rows =
        std::clamp<std::int64_t>(row_split.a.rows - tile.a.begin, 0, tile.a.count);
    const std::int64_t columns = std::clamp<std::int64_t>(own.size - tile.b.begin, 0, tile.b.count);
    if (rows == 0 || columns == 0 || !tile.finishes) return;
    const bool is_new = stored
                            .insert({{first + tile.a.begin, tile.b.begin},
                                     {{first + tile.a.begin, rows}, {tile.b.begin, columns}}})
                            .second;
    ASSERT_TRUE(is_new) << "row " << tile.a.begin << ", column " << tile.b.begin;
  });
}

/// Tiles are all of the rank's columns of C.
void expect_all(const planned_scatter& p, const stored_tiles& stored) {
  std::int64_t elements = 0;
  std::set<std::int64_t> rows;
  std::set<std::int64_t> columns;
  std::map<std::int64_t, std::int64_t> next;  // by column
  for (const auto& [corner, part] : stored) {
    elements += part.first.size * part.second.size;
    ASSERT_EQ(part.first.begin, next[part.second.begin]);
    next[part.second.begin] += part.first.size;
    rows.insert(corner.first);
    columns.insert(corner.second);
  }
  ASSERT_EQ(elements, p.problem.m * own_columns(p).size);
  ASSERT_EQ(stored.size(), rows.size() * columns.size());
}

TEST(scatters, all_of_c_is_stored_once) {
  each_plan(scatter_cases(), [](const planned_scatter& p) {
    if (testing::Test::HasFatalFailure() || own_columns(p).empty()) return;
    SCOPED_TRACE(p.text);
    const scatter_maps maps = maps_for(p);
    ASSERT_EQ(static_cast<int>(maps.row_splits.size()), p.plan.row_splits);
    stored_tiles stored;
    for (std::size_t row_split = 0; row_split < maps.row_splits.size(); ++row_split)
      expect_row_split(p, maps, row_split, stored);
    expect_all(p, stored);
    if (p.plan.way == scatter_way::local_only) return;
    // What a block stores, or sends, is a tile of the protocol, and of no other block.
    std::set<int> numbers;
    for (const auto& [corner, part] : stored) {
      const int tile = p.how.tile_at(corner.first, corner.second);
      ASSERT_TRUE(numbers.insert(tile).second);
      ASSERT_EQ(p.how.tiles().rows_of(tile).begin, part.first.begin);
      ASSERT_EQ(p.how.tiles().rows_of(tile).size, part.first.size);
      ASSERT_EQ(p.how.tiles().cols_of(tile).begin - own_columns(p).begin, part.second.begin);
      ASSERT_EQ(p.how.tiles().cols_of(tile).size, part.second.size);
    }
    ASSERT_EQ(static_cast<int>(numbers.size()), p.how.tiles().count());
    ASSERT_EQ(p.how.tile_at(p.problem.m, 0), -1);
    ASSERT_EQ(p.how.tile_at(0, own_columns(p).size), -1);
  });
}

/// By hop: where the copies of C lie that tiles go to.
TEST(scatters, copies_lie_at_the_peers) {
  each_plan(scatter_cases(), [](const planned_scatter& p) {
    const range own = own_columns(p);
    if (own.empty()) return;
    SCOPED_TRACE(p.text);
    const scatter_maps maps = maps_for(p);
    const bool store_to_peers = p.plan.way == scatter_way::store_to_peers;
    ASSERT_EQ(static_cast<int>(maps.copies.size()), store_to_peers ? p.how.world() : 1);
    ASSERT_EQ(static_cast<int>(maps.tma_tiles.size()),
              p.plan.way == scatter_way::tile_flags ? p.how.world() : 0);
    for (std::size_t hop = 0; hop < maps.copies.size(); ++hop) {
      const int peer = (p.how.rank() + static_cast<int>(hop)) % p.how.world();
      const gpu::matrix_at& c = maps.copies[hop];
      ASSERT_EQ(address(c.data), c_at(p, peer, 0, own.begin));
      ASSERT_EQ(c.rows, p.plan.row_splits == 1 ? p.problem.m : p.plan.split_rows);
      ASSERT_EQ(c.columns, own.size);
      ASSERT_EQ(c.stride, p.problem.n);
    }
    for (std::size_t hop = 0; hop < maps.tma_tiles.size(); ++hop) {
      const int peer = (p.how.rank() + static_cast<int>(hop)) % p.how.world();
      const gpu::matrix_at& c = maps.tma_tiles[hop].first;
      ASSERT_EQ(address(c.data), c_at(p, peer, 0, own.begin));
      ASSERT_EQ(c.rows, p.problem.m);
      ASSERT_EQ(c.columns, own.size);
      ASSERT_EQ(c.stride, p.problem.n);
      ASSERT_EQ(maps.tma_tiles[hop].layers, 1);
    }
  });
}

/// What a sender asks for, and sends.
struct sent {
  int flag;
  std::uint64_t use;
  std::int64_t rows, columns, row, column;
  int peer;
  auto operator<=>(const sent&) const = default;
};

std::vector<sent> said_by_program(const planned_scatter& p, strided share, std::uint64_t epoch) {
  std::vector<sent> all;
  int flag = -1;
  std::uint64_t use = 0;
  p.how.scatter(share, epoch, [&](const step& s) {
    if (s.acquire.named()) {
      flag = s.acquire.ready;
      use = s.acquire.use;
    }
    if (s.what == action::none) return;
    EXPECT_EQ(s.from.row, s.to.row);
    EXPECT_EQ(s.from.col, s.to.col);
    all.push_back(
        {flag, use, s.rows, s.cols, s.to.row, s.to.col - own_columns(p).begin, s.to.rank});
  });
  return all;
}

TEST(scatters, senders_send_what_the_program_says) {
  int looked_at = 0;
  each_plan(scatter_cases(), [&](const planned_scatter& p) {
    if (p.plan.way != scatter_way::tile_flags || p.how.world() == 1) return;
    ++looked_at;
    SCOPED_TRACE(p.text);
    const sent_tiles grid = sent_tiles::of(p.how);
    const int senders = p.plan.protocol.senders;
    for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
      for (int sender = 0; sender < senders; ++sender) {
        const strided share{sender, senders};
        std::vector<sent> sent_by_numbers;
        for (int turn = 0; turn < grid.turns(share); ++turn) {
          const sent_tile tile = grid.at(share, turn);
          for (int hop = 1; hop < p.how.world(); ++hop)
            sent_by_numbers.push_back({tile.flag, epoch, tile.rows, tile.columns, tile.row,
                                       tile.column,
                                       receiver_at_hop(p.how.rank(), hop, p.how.world())});
        }
        ASSERT_EQ(sent_by_numbers, said_by_program(p, share, epoch));
      }
    }
  });
  EXPECT_GT(looked_at, 0);
}

/// TMA tiles are whole tiles, one below the other, as large as the ring and TMA take them,
/// and as large as these can be.
TEST(scatters, tma_tiles_cover_tiles) {
  each_plan(scatter_cases(), [](const planned_scatter& p) {
    if (p.plan.way != scatter_way::tile_flags) return;
    SCOPED_TRACE(p.text);
    const sent_tiles grid = sent_tiles::of(p.how);
    ASSERT_GE(grid.tma_tile_rows, 1);
    ASSERT_LE(grid.tma_tile_rows, 256);
    ASSERT_LE(grid.tile_columns, 256);
    ASSERT_LE(grid.tma_tile_bytes(), 32768U);
    ASSERT_EQ(grid.tile_rows % grid.tma_tile_rows, 0) << "a TMA tile reaches into the tile below";
    for (int rows = grid.tma_tile_rows + 1; rows <= std::min(grid.tile_rows, 256); ++rows)
      ASSERT_TRUE(grid.tile_rows % rows != 0 || rows * grid.tile_columns * 2 > 32768);
    ASSERT_EQ(grid.tma_tile_bytes(),
              static_cast<unsigned>(grid.tma_tile_rows * grid.tile_columns * 2));
    if (own_columns(p).empty()) return;
    for (const gpu::tma_tiles_at& tma_tiles : maps_for(p).tma_tiles) {
      ASSERT_EQ(tma_tiles.tma_tile_rows, grid.tma_tile_rows);
      ASSERT_EQ(tma_tiles.tma_tile_columns, grid.tile_columns);
    }
    for (int turn = 0; turn < grid.turns({0, 1}); ++turn) {
      const sent_tile tile = grid.at({0, 1}, turn);
      // What the TMA tiles bring, clipped where C ends.
      int rows = 0;
      for (int row = 0; row < tile.rows; row += grid.tma_tile_rows)
        rows += std::min<int>(grid.tma_tile_rows, static_cast<int>(p.problem.m) - tile.row - row);
      ASSERT_EQ(rows, tile.rows);
      ASSERT_EQ(std::min<std::int64_t>(grid.tile_columns, own_columns(p).size - tile.column),
                tile.columns);
    }
  });
}

/// Senders ask for tiles in the order in which the GEMM deals them to its blocks: see
/// tile_schedule.
TEST(scatters, senders_go_in_the_order_of_the_gemm) {
  each_plan(scatter_cases(), [](const planned_scatter& p) {
    if (p.plan.way != scatter_way::tile_flags || p.plan.gemm.config.swap_ab) return;
    SCOPED_TRACE(p.text);
    const gpu::tile_schedule& order = p.plan.gemm.schedule;
    const gpu::tile_config& config = p.plan.gemm.config;
    const int count = p.how.tiles().count();
    std::vector<int> finished;
    for (int tile = 0; tile < order.tiles(); ++tile) {
      for (int block = 0; block < config.cluster; ++block) {
        const std::int64_t row = (order.m_of(tile) * config.cluster + block) *
                                 static_cast<std::int64_t>(tile_rows(config));
        const int index = p.how.tile_at(row, order.n_of(tile) * std::int64_t{config.block_n});
        if (index >= 0) finished.push_back(index);
      }
    }
    ASSERT_EQ(static_cast<int>(finished.size()), count);
    for (int turn = 0; turn < count; ++turn)
      ASSERT_EQ(p.how.tile_in_turn(turn), finished[static_cast<std::size_t>(turn)]);
  });
}

/// With copy engines: every row split goes to every peer, where its rows lie.
TEST(scatters, copy_engines_send_all_rows) {
  int row_splits = 0;
  each_plan(scatter_cases(), [&](const planned_scatter& p) {
    if (p.plan.streams == 0) return;
    SCOPED_TRACE(p.text);
    const range own = own_columns(p);
    auto* const c = static_cast<std::byte*>(operand_at(c_begin + p.how.rank() * between));
    for (int hop = 1; hop < p.how.world(); ++hop) {
      const int peer = (p.how.rank() + hop) % p.how.world();
      std::int64_t next = 0;
      for (int row_split = 0; row_split < p.plan.row_splits; ++row_split) {
        const sent_row_split sent =
            row_split_for(p.problem, p.plan, p.how, c, between, row_split, hop);
        ASSERT_GT(sent.rows, 0U);
        ASSERT_EQ(sent.stride, static_cast<std::size_t>(p.problem.n) * 2);
        ASSERT_EQ(sent.bytes, static_cast<std::size_t>(own.size) * 2);
        ASSERT_EQ(address(sent.from), c_at(p, p.how.rank(), next, own.begin));
        ASSERT_EQ(address(sent.to), c_at(p, peer, next, own.begin));
        const range rows = rows_of_row_split(p.problem, p.plan, row_split);
        ASSERT_EQ(rows.begin, next);
        ASSERT_EQ(rows.size, static_cast<std::int64_t>(sent.rows));
        next += rows.size;
      }
      ASSERT_EQ(next, p.problem.m);
    }
    row_splits = std::max(row_splits, p.plan.row_splits);
  });
  EXPECT_GT(row_splits, 4);
}

}  // namespace
