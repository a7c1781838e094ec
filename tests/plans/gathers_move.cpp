// Where what a gather moves lies, by the addresses that tensor maps, strides and the place of the
// outbox give it: what the protocol's program says, within the memory that is allocated.
#include <cstdint>
#include <set>

#include <gtest/gtest.h>

#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/sending.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "tests/plans/cases.hpp"
#include "tests/plans/tiles.hpp"

namespace {

using namespace untax;
using plans_test::address;
using plans_test::each_plan;
using plans_test::gather_cases;
using plans_test::operand_at;
using plans_test::planned_gather;

constexpr std::int64_t a_begin = std::int64_t{1} << 40;
constexpr std::int64_t b_begin = std::int64_t{2} << 40;
constexpr std::int64_t c_begin = std::int64_t{3} << 40;
constexpr std::int64_t inbox_begin = std::int64_t{4} << 40;
constexpr std::int64_t inbox_span = std::int64_t{1} << 38;

symmetric<std::byte> inbox_of(int rank) {
  return {static_cast<std::byte*>(operand_at(inbox_begin + rank * inbox_span)),
          static_cast<std::size_t>(inbox_span), rank, static_cast<std::size_t>(inbox_span)};
}

/// The bytes of a place, by what an operand is: rows one behind the other.
std::int64_t address_of(const planned_gather& p, const place& at) {
  const auto& [m, n, k, type, gather] = p.problem;
  const bool rows = gather == gather_axis::rows;
  const range part = p.how.shard(p.how.rank());
  const std::int64_t set = p.how.sets().sets;
  switch (at.of) {
    case operand::a:
      EXPECT_EQ(at.rank, p.how.rank());
      return a_begin + (at.row * (rows ? k : part.size) + at.col) * 2;
    case operand::inbox:
      return inbox_begin + at.rank * inbox_span + (at.row * k + at.col) * 2;
    default:
      EXPECT_EQ(at.of, operand::outbox);
      // Behind the inbox, at a multiple of 512 bytes.
      return inbox_begin + at.rank * inbox_span + (set * m * k * 2 + 511) / 512 * 512 +
             (at.row * (rows ? k : p.how.shard(0).size) + at.col) * 2;
  }
}

/// Of elements of `map`, by layer, row and column.
std::int64_t address_in(const gpu::tma_tiles_at& map, int layer, std::int64_t row,
                        std::int64_t column) {
  return address(map.first.data) + (layer * map.between + row * map.first.stride + column) * 2;
}

TEST(gathers_move, steps_lie_where_operands_do) {
  each_plan(gather_cases(), [](const planned_gather& p) {
    SCOPED_TRACE(p.text);
    gpu::moved_operands moved;
    moved.run.world.rank = p.how.rank();
    moved.run.in = static_cast<const std::byte*>(operand_at(a_begin));
    moved.run.inbox = inbox_of(p.how.rank());
    describe_moved(moved, p.plan, p.how);
    const gather_bytes bytes = bytes_of(p.plan, p.how);
    if (p.plan.packets) return;
    ASSERT_GE(static_cast<std::int64_t>(bytes.inbox),
              p.how.sets().sets * p.problem.m * p.problem.k * 2);
    const auto most = inbox_begin + static_cast<std::int64_t>(bytes.inbox + bytes.outbox);
    const int senders = p.plan.protocol.senders;
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
      for (int sender = 0; sender < senders; ++sender) {
        p.how.move(sender, epoch, [&](const step& s) {
          if (s.what != action::copy) return;
          ASSERT_EQ(address(moved.at(s.from)), address_of(p, s.from));
          ASSERT_EQ(address(moved.at(s.to)), address_of(p, s.to));
          const gpu::copied_rows rows = moved.rows_of(s);
          ASSERT_EQ(address(rows.from), address_of(p, s.from));
          ASSERT_EQ(address(rows.to), address_of(p, s.to));
          ASSERT_EQ(static_cast<std::int64_t>(rows.rows), s.rows);
          ASSERT_EQ(static_cast<std::int64_t>(rows.row_bytes), s.cols * 2);
          ASSERT_EQ(static_cast<std::int64_t>(rows.from_pitch), moved.stride_of(s.from.of) * 2);
          ASSERT_EQ(static_cast<std::int64_t>(rows.to_pitch), moved.stride_of(s.to.of) * 2);
          for (const place& at : {s.from, s.to}) {
            const std::int64_t last =
                address(moved.at(at)) + ((s.rows - 1) * moved.stride_of(at.of) + s.cols) * 2;
            ASSERT_TRUE(at.of == operand::a || last - at.rank * inbox_span <= most);
            place below = at;
            below.row += s.rows - 1;
            ASSERT_EQ(last - s.cols * 2, address_of(p, below));
          }
        });
      }
    }
  });
}

/// Elements of every operand that a step can name, each with rows of its own length.
TEST(gathers_move, elements_of_all_operands) {
  plans_test::numbers number(11);
  for (int round = 0; round < 200; ++round) {
    gpu::moved_operands moved;
    moved.run.world.rank = static_cast<int>(number(0, 7));
    moved.run.in = static_cast<const std::byte*>(operand_at(a_begin));
    moved.run.out = static_cast<std::byte*>(operand_at(c_begin));
    moved.run.between = number(1, 1000) * 512;
    moved.run.inbox = inbox_of(moved.run.world.rank);
    moved.a_stride = number(1, 5000);
    moved.c_stride = number(1, 5000);
    moved.inbox_stride = number(1, 5000);
    moved.outbox_stride = number(1, 5000);
    moved.outbox_begin = number(1, 1000) * 512;
    const auto rank = static_cast<int>(number(0, 7));
    const std::int64_t row = number(0, 3000);
    const std::int64_t column = number(0, 3000);
    const auto lies_at = [&](operand of, std::int64_t first, std::int64_t stride) {
      EXPECT_EQ(address(moved.at({of, rank, row, column})), first + (row * stride + column) * 2);
      EXPECT_EQ(moved.stride_of(of), stride);
    };
    const std::int64_t inbox = inbox_begin + rank * inbox_span;
    lies_at(operand::a, a_begin, moved.a_stride);
    lies_at(operand::c, c_begin + (rank - moved.run.world.rank) * moved.run.between,
            moved.c_stride);
    lies_at(operand::inbox, inbox, moved.inbox_stride);
    lies_at(operand::outbox, inbox + moved.outbox_begin, moved.outbox_stride);
  }
}

/// Rows that follow each other without gaps, at both ends, are one copy.
TEST(gathers_move, rows_without_gaps_are_dense) {
  gpu::moved_operands moved;
  moved.a_stride = moved.inbox_stride = 64;
  const step whole{.what = action::copy,
                   .rows = 3,
                   .cols = 64,
                   .from = {operand::a, 0},
                   .to = {operand::inbox, 0}};
  EXPECT_TRUE(moved.rows_of(whole).dense());
  moved.inbox_stride = 72;
  EXPECT_FALSE(moved.rows_of(whole).dense());
  moved.inbox_stride = 64;
  moved.a_stride = 72;
  EXPECT_FALSE(moved.rows_of(whole).dense());
  moved.inbox_stride = 72;
  EXPECT_FALSE(moved.rows_of(whole).dense());
}

/// A TMA tile has the rows and columns of its chunk, or ends with its matrix where the chunk does.
void expect_tma_tile(const gpu::tma_tiles_at& map, const outgoing_chunk& chunk) {
  ASSERT_EQ(std::min<std::int64_t>(map.tma_tile_rows, map.first.rows - chunk.row), chunk.rows);
  ASSERT_EQ(std::min<std::int64_t>(map.tma_tile_columns, map.first.columns - chunk.column),
            chunk.columns);
}

/// Only chunks that are TMA tiles are described as such: others may be larger than can be.
TEST(gathers_move, tma_tiles_are_described_where_they_move) {
  each_plan(gather_cases(), [](const planned_gather& p) {
    SCOPED_TRACE(p.text);
    const gather_maps maps = maps_of(
        p.problem, p.plan, p.how, {operand_at(a_begin), operand_at(b_begin), operand_at(c_begin)},
        inbox_of(p.how.rank()));
    const bool moves = p.plan.tma_tiles && !p.how.shard(p.how.rank()).empty();
    ASSERT_EQ(static_cast<int>(maps.inbox_tma_tiles.size()), moves ? p.how.world() : 0);
  });
}

TEST(gathers_move, tma_tiles_are_chunks) {
  int looked_at = 0;
  each_plan(gather_cases(), [&](const planned_gather& p) {
    if (!p.plan.tma_tiles) return;
    ++looked_at;
    SCOPED_TRACE(p.text);
    const gather_maps maps = maps_of(
        p.problem, p.plan, p.how, {operand_at(a_begin), operand_at(b_begin), operand_at(c_begin)},
        inbox_of(p.how.rank()));
    if (p.how.shard(p.how.rank()).empty()) {
      ASSERT_TRUE(maps.inbox_tma_tiles.empty());
      return;
    }
    ASSERT_EQ(static_cast<int>(maps.inbox_tma_tiles.size()), p.how.world());
    const sending_grid grid = sending_grid::of(p.how);
    const gpu::tma_tiles_at& own = maps.shard_tma_tiles;
    // What TMA can, and what it is said to bring.
    ASSERT_LE(own.tma_tile_rows, 256);
    ASSERT_LE(own.tma_tile_columns, 256);
    ASSERT_EQ(own.tma_tile_columns % 8, 0);
    ASSERT_EQ(grid.tma_tile_bytes(),
              static_cast<std::uint32_t>(own.tma_tile_rows * own.tma_tile_columns * 2));
    const gpu::tile_config& c = p.plan.gemm.config;
    const bool stored = p.plan.who == gather_senders::epilogue_warps;
    ASSERT_LE(grid.tma_tile_bytes(),
              static_cast<unsigned>(stored ? c.epilogue_buffers * subtile_bytes(c) : 32768));
    ASSERT_EQ(own.layers, 1);
    for (int peer = 0; peer < p.how.world(); ++peer) {
      const gpu::tma_tiles_at& there = maps.inbox_tma_tiles[static_cast<std::size_t>(peer)];
      ASSERT_EQ(there.layers, p.how.sets().sets);
      ASSERT_EQ(there.tma_tile_rows, own.tma_tile_rows);
      ASSERT_EQ(there.tma_tile_columns, own.tma_tile_columns);
      for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        const int set = p.how.sets().set_of(epoch);
        grid.each({0, 1}, [&](const outgoing_chunk& chunk, int, int) {
          const auto at = p.how.chunk_at(p.how.rank(), chunk.index);
          expect_tma_tile(own, chunk);
          expect_tma_tile(there, chunk);
          ASSERT_EQ(address_in(own, 0, chunk.row, chunk.column),
                    address_of(p, p.how.in_own_shard(at)));
          ASSERT_EQ(address_in(there, set, chunk.row, chunk.column),
                    address_of(p, p.how.in_inbox(peer, at, epoch)));
          ASSERT_EQ(address_in(there, set, chunk.row + 1, chunk.column) -
                        address_in(there, set, chunk.row, chunk.column),
                    p.problem.k * 2);
        });
      }
    }
  });
  EXPECT_GT(looked_at, 0);
}

/// What goes out before a TMA tile does: all TMA tiles of the peers and turns before it.
TEST(gathers_move, tma_tiles_have_their_times_in_turn) {
  int looked_at = 0;
  each_plan(gather_cases(), [&](const planned_gather& p) {
    if (p.plan.who != gather_senders::epilogue_warps) return;
    ++looked_at;
    SCOPED_TRACE(p.text);
    const sending_grid grid = sending_grid::of(p.how);
    std::uint64_t before = 0;
    grid.each({0, 1}, [&](const outgoing_chunk& chunk, int hop, int hops) {
      ASSERT_EQ(grid.bytes_before(chunk, hop), before);
      before += static_cast<std::uint64_t>(hops) * grid.tma_tile_bytes();
    });
  });
  EXPECT_GT(looked_at, 0);
}

}  // namespace
