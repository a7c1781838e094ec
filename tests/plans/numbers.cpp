// The plain numbers that plans are made of: shares of blocks, what is awaited, who sends; and what
// they are where nobody has filled them in.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/copy/block_share.hpp"
#include "engines/gpu/gemm/cta_reads.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"
#include "engines/gpu/gemm/sources/segments.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;

/// Shares are of one size, begin at multiples of the unit, and no more than asked for or than have
/// a word for each thread.
TEST(plan_numbers, shares_of_blocks) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 2000; ++round) {
      constexpr std::int64_t some[] = {1, 4, 30, 300, 9000};
      const std::int64_t rows = number(1, number.one_of(some));
      const std::int64_t columns = 8 * number(1, number.one_of(some));
      const auto most = static_cast<int>(number(1, 132));
      const std::int64_t unit = number(0, 1) == 0 ? 64 : 128;
      SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << most << " blocks");
      const auto share = gpu::share_of_block(rows, columns, most, unit);
      ASSERT_GE(share.rows, 1);
      ASSERT_LE(share.rows, rows);
      ASSERT_GE(share.columns, 1);
      ASSERT_LE(share.columns, columns);
      ASSERT_TRUE(share.columns == columns || share.columns % unit == 0);
      ASSERT_TRUE(share.columns == columns || share.rows == 1) << "whole rows, or parts of one";
      const std::int64_t down = (rows + share.rows - 1) / share.rows;
      const std::int64_t across = (columns + share.columns - 1) / share.columns;
      ASSERT_EQ(share.count, down * across);
      ASSERT_LE(share.count, most);
      const std::int64_t words = std::max<std::int64_t>(rows * columns * 2 / 4096, 1);
      ASSERT_LE(share.count, words);
      // No fewer than so: one row less, or one unit less, would be too many.
      const std::int64_t wanted = std::min<std::int64_t>(words, most);
      const std::int64_t fewer = std::max<std::int64_t>(share.rows - 1, 1);
      ASSERT_TRUE(wanted > rows || share.rows == 1 || (rows + fewer - 1) / fewer > wanted);
      const std::int64_t less = std::max<std::int64_t>(share.columns - unit, 1);
      ASSERT_TRUE(wanted <= rows || share.columns <= unit ||
                  (columns + less - 1) / less > wanted / rows);
      ASSERT_TRUE(wanted > rows || share.columns == columns);
    }
  }
}

/// Code fills plans field by field, and a field that it leaves out, since there is nothing of the
/// kind, has to mean that: every byte is zero when `named` has set those to zero that are not.
template <class T>
void expect_nothing(void (*named)(T&) = [](T&) {}) {
  static T value;  // of static memory also what lies between fields is zero
  named(value);
  static const std::byte zeros[sizeof(T)] = {};
  EXPECT_EQ(std::memcmp(&value, zeros, sizeof(T)), 0) << testing::internal::GetTypeName<T>();
}

TEST(plan_numbers, what_is_not_filled_in_is_nothing) {
  expect_nothing<range>();
  expect_nothing<gpu::row_span>();
  expect_nothing<gpu::matrix_at>();
  expect_nothing<gpu::copied_rows>();
  expect_nothing<gather_segments>();
  expect_nothing<packet_thread>();
  expect_nothing<gpu::cta_read>([](auto& r) { r.finishes = !r.finishes; });
  expect_nothing<gpu::work_tile>([](auto& w) { ++w.tile; });
  expect_nothing<gpu::tile_schedule>([](auto& s) {
    --s.k_blocks_per_stage;
    --s.segments;
    s.raster_group -= 8;
  });
  expect_nothing<gpu::tma_tiles_at>([](auto& t) {
    --t.layers;
    --t.tma_tile_rows;
    --t.tma_tile_columns;
  });
  expect_nothing<gpu::block_share>([](auto& s) {
    --s.rows;
    --s.columns;
    --s.count;
  });
  expect_nothing<moving_blocks>([](auto& b) { b.by_rows = !b.by_rows; });
  expect_nothing<incoming_chunk>([](auto& c) { ++c.ready; });
  expect_nothing<receiving_grid>([](auto& g) {
    --g.ranks;
    --g.first_hop;
  });
  expect_nothing<sent_shard>([](auto& s) {
    s.counted = !s.counted;
    s.chunk_bytes -= 2;
  });
  expect_nothing<comm::transfer>([](auto& t) {
    ++t.acquire;
    ++t.publish;
  });
  expect_nothing<gpu::tma_tile_size>([](auto& t) {
    --t.rows;
    --t.columns;
  });
  expect_nothing<awaited_chunks>([](auto& c) {
    --c.in_row;
    --c.chunk_k_blocks;
  });
  expect_nothing<arrival_grid>([](auto& g) {
    g.by_rows = !g.by_rows;
    --g.shard_row_chunks;
    --g.chunk_rows;
    --g.chunk_k_blocks;
    --g.in_row;
    --g.last_in_row;
  });
  expect_nothing<packet_panel>([](auto& p) { --p.shard_rows; });
  expect_nothing<packet_share::place>([](auto& p) { ++p.row; });
}

TEST(plan_numbers, plans_that_are_not_filled_in) {
  gather_plan gather;
  EXPECT_EQ(gather.who, gather_senders::elsewhere);
  EXPECT_EQ(gather.comm_ctas + gather.own_grid + gather.streams + gather.rate_limit, 0);
  EXPECT_EQ(gather.segment_rows + gather.segment_k_blocks, 0);
  EXPECT_FALSE(gather.packets || gather.tma_tiles || gather.polls);
  EXPECT_EQ(gather.protocol.world * gather.protocol.workers * gather.protocol.senders, 1);
  EXPECT_EQ(gather.protocol.sets, 2);
  scatter_plan scatter;
  EXPECT_EQ(scatter.way, scatter_way::store_to_peers);
  EXPECT_EQ(scatter.comm_ctas + scatter.own_grid + scatter.streams + scatter.split_rows, 0);
  EXPECT_EQ(scatter.parts * scatter.row_splits, 1);
  EXPECT_EQ(gather.gemm.blocks() + gather.gemm.multicast_rows, 0);
  EXPECT_EQ(gather.gemm.cycles, 0);
  gather_segments::part part;
  EXPECT_EQ(part.segment + part.row + part.first + part.end, 0);
  const gpu::gemm_shape shape;
  EXPECT_EQ(shape.m + shape.n + shape.k, 0);
  const device_sum sum;
  EXPECT_EQ(sum.m + sum.n + sum.k, 0);
  EXPECT_EQ(sum.phases, 1);
  const sums_plan sums;
  EXPECT_EQ(sums.comm_ctas + sums.own_grid, 0);
  EXPECT_FALSE(sums.beside);
  const all_gather_gemm_protocol::chunk chunk;
  EXPECT_EQ(chunk.source + chunk.index, 0);
  EXPECT_EQ(bulk_gather{}.senders, 1);
  packet_share none;
  EXPECT_EQ(none.turns(), 0);
  EXPECT_EQ(none.take().row, -1);
  gpu::moved_operands moved;
  EXPECT_EQ(moved.a_stride + moved.inbox_stride + moved.outbox_stride + moved.outbox_begin +
                moved.c_stride + moved.run.between + moved.run.launch,
            0);
}

/// Chunks of a column end where those of the next begin, the last where the k-blocks do.
TEST(plan_numbers, awaited_columns_end_where_the_next_begin) {
  const awaited_chunks what{
      .first = 0, .in_row = 3, .rows = 2, .columns = 3, .row = 0, .begin = 4, .chunk_k_blocks = 5};
  EXPECT_EQ(what.end_of(0, 17), 4);
  EXPECT_EQ(what.end_of(1, 17), 9);
  EXPECT_EQ(what.end_of(2, 17), 14);
  EXPECT_EQ(what.end_of(3, 17), 17);
  EXPECT_EQ(what.end_of(2, 12), 12) << "the tile ends before";
}

/// Tiles wait for the chunks that have a row and a k-block of theirs, column by column.
TEST(plan_numbers, what_is_awaited_has_something_of_a_tile) {
  plans_test::numbers number(5);
  const auto some = [&](int least, int most) { return static_cast<int>(number(least, most)); };
  for (int round = 0; round < 5000; ++round) {
    arrival_grid grid{.by_rows = false, .source_size = 100, .rows = some(1, 12), .shard_rows = 12};
    grid.chunk_rows = some(1, 5);
    grid.chunk_k_blocks = some(1, 4);
    grid.in_row = some(1, 4);
    grid.last_in_row = some(1, grid.in_row);
    grid.last_source = 2;
    const auto [source, row, begin] = std::array{some(0, 2), some(0, 12), some(0, 17)};
    const auto [row_end, end] = std::array{row + some(0, 9), begin + some(1, 9)};
    const int across = source == 2 ? grid.last_in_row : grid.in_row;
    std::set<std::pair<int, int>> wanted;
    for (int i = row; i < std::min(row_end, grid.rows); ++i)
      for (int k = begin; k < std::min(end, across * grid.chunk_k_blocks); ++k)
        wanted.insert({k / grid.chunk_k_blocks, i / grid.chunk_rows});
    const awaited_chunks what = grid.touched(0, source, row, row_end, begin, end);
    ASSERT_EQ(what.rows == 0, wanted.empty()) << "round " << round;
    ASSERT_EQ(what.count(), static_cast<int>(wanted.size())) << "round " << round;
    int i = 0;
    for (const auto& [column, down] : wanted)
      ASSERT_EQ(what.counter(i++), source * 100 + down * across + column) << "round " << round;
  }
}

/// The second segment of k-blocks, of which each source has four, and the last of rows.
TEST(plan_numbers, segments_wait_for_their_source) {
  arrival_grid grid{.by_rows = false, .source_size = 4, .rows = 6, .shard_rows = 6};
  grid.chunk_k_blocks = grid.in_row = grid.last_in_row = 2;
  const gather_segments how{.k_blocks = 4, .sources = {1, 2}, .inbox_rows = {-1, 0}};
  const awaited_chunks what = how.awaited(grid, 0, 3, 3, 6, 8);
  EXPECT_EQ(what.begin, 6);
  EXPECT_EQ(what.first, 4 * 2 + 3 * 2 + 1);
  EXPECT_EQ(how.sender_of(grid, what, 0, 6), 2);
  EXPECT_EQ(how.part_of(3, 6, 12, 1, 10).end, 8);
  grid.by_rows = true;
  grid.shard_row_chunks = 2;
  for (int i = 0; i < 15; ++i)
    EXPECT_EQ(how.sender_of(grid, {.rows = 5, .columns = 3, .row = 1}, i, 0), (1 + i % 5) / 2);
  EXPECT_EQ((gather_segments{.rows = 1, .k_blocks = 100}).at(3, 7), 3);
}

TEST(plan_numbers, copies_have_the_pitches_of_both_operands) {
  gpu::moved_operands moved;
  moved.a_stride = 10;
  moved.c_stride = 20;
  const step s{.rows = 3, .cols = 7, .from = {operand::a, 0}, .to = {operand::c, 0}};
  const gpu::copied_rows copy = moved.rows_of(s);
  EXPECT_EQ(std::tuple(copy.from_pitch, copy.to_pitch, copy.row_bytes, copy.rows),
            std::tuple(20U, 40U, 14U, 3U));
  for (const std::size_t to : {8, 9})
    for (const std::size_t from : {8, 9})
      EXPECT_EQ((gpu::copied_rows{nullptr, nullptr, to, from, 8, 1}).dense(), to + from == 16);
}

TEST(plan_numbers, warps_that_send_are_the_fourth_of_the_first_blocks) {
  const moving_blocks some{gather_senders::warps, true, 9, 5};
  for (int i = 0; i < 4 * 9; ++i) {
    EXPECT_EQ(sends_packets(some, i / 4, i % 4), i % 4 == 3 && i / 4 < 5);
    EXPECT_EQ(sender_beside(some, i / 4, i % 4), i % 4 == 3 ? i / 4 : 5);
  }
  // As many turns are a warp's as its first thread has packets.
  for (int rows = 1; rows < 100; ++rows)
    for (int thread = 0; thread < 64; ++thread)
      EXPECT_EQ(packet_share({.rows = rows, .columns = 4}, thread, 64).turns(),
                (std::max(rows - thread / 32 * 32, 0) + 63) / 64);
}

/// With gather = k own columns are multiplied while chunks come, so the warp that loads moves last.
TEST(plan_numbers, producers_move_last_where_own_columns_come_first) {
  constexpr int blocks = 5;
  const moving_blocks by_k{gather_senders::all_ctas_first, false, blocks, 4 * blocks};
  for (int block = 0; block < blocks; ++block) {
    for (int warp = 0; warp < 4; ++warp) {
      const int round = warp == 0 ? 3 : warp - 1;
      EXPECT_EQ(sender_beside(by_k, block, warp), round * blocks + block);
    }
  }
  const moving_blocks by_rows{gather_senders::all_ctas_first, true, blocks, 4 * blocks};
  for (int number = 0; number < 4 * blocks; ++number)
    EXPECT_EQ(sender_beside(by_rows, number / 4, number % 4), number)
        << "a block's chunks together";
}

TEST(plan_numbers, rooms_are_numbered_by_set) {
  const sent_shard shard{.rows = 10, .ready = 5, .ready_set = 7, .listed_from = 2};
  for (const int set : {0, 1}) EXPECT_EQ(shard.inbox_room(set, 3, 6, 9).number, 5 + 7 * set);
  for (const int set : {0, 1}) EXPECT_EQ(shard.publish_counter(set, 6), 8 + 7 * set);
  for (const int row : {8, 14}) EXPECT_EQ(shard.rows_of({.row = row, .rows = 4}), row == 8 ? 2 : 0);
  plans_test::each_plan(plans_test::gather_cases(), [](const plans_test::planned_gather& p) {
    ASSERT_EQ(sent_shard::of(p.how).listed_from, 0) << "all runs have the same rows";
  });
}

TEST(plan_numbers, tma_tiles_fit_from_one_row_and_eight_columns_to_the_last_byte) {
  EXPECT_TRUE(gpu::fits_tma({1, 8}, 16));
  EXPECT_TRUE(gpu::fits_tma({2, 8}, 32));
  EXPECT_FALSE(gpu::fits_tma({2, 8}, 31));
  EXPECT_FALSE(gpu::fits_tma({0, 8}, 1000));
  EXPECT_FALSE(gpu::fits_tma({1, 0}, 1000));
  EXPECT_FALSE(gpu::fits_tma({1, 12}, 1000));
  EXPECT_TRUE(gpu::fits_tma({256, 256}, 1 << 20));
  EXPECT_FALSE(gpu::fits_tma({257, 256}, 1 << 20));
  EXPECT_FALSE(gpu::fits_tma({256, 264}, 1 << 20));
}

}  // namespace
