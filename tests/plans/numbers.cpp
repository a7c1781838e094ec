// The plain numbers that plans are made of: shares of blocks, what is awaited, who sends; and what
// they are where nobody has filled them in.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "engines/gpu/comm/bulk_gather.hpp"
#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/sent_shard.hpp"
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
  const comm::sender_program senders;
  EXPECT_EQ(senders.rank, 0);
  EXPECT_EQ(senders.world * senders.count, 1);
  EXPECT_EQ(senders.sets.sets, 2);
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

/// Tiles reach beyond the rows and the columns of A; nothing is awaited there.
TEST(plan_numbers, nothing_is_awaited_beyond_a) {
  arrival_grid grid;
  grid.rows = 10;
  grid.shard_rows = 10;
  grid.shard_row_chunks = 3;
  grid.chunk_rows = 4;
  grid.chunk_k_blocks = 2;
  grid.in_row = grid.last_in_row = 3;
  EXPECT_EQ(grid.touched(0, 0, 9, 20, 0, 2).rows, 1);
  EXPECT_EQ(grid.touched(0, 0, 10, 20, 0, 2).count(), 0);
  EXPECT_EQ(grid.touched(0, 0, 0, 4, 4, 9).columns, 1);
  EXPECT_EQ(grid.touched(0, 0, 0, 4, 6, 9).count(), 0);
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
