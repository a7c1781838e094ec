// The plain numbers that plans are made of: shares of blocks, divisions known beforehand, orders of
// turns.
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <untax/tile/order.hpp>

#include "engines/gpu/attention/shape.hpp"
#include "engines/gpu/comm/bulk_gather.hpp"
#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/sending.hpp"
#include "engines/gpu/comm/sent_tiles.hpp"
#include "engines/gpu/copy/block_share.hpp"
#include "engines/gpu/gemm/sources/arrival_grid.hpp"
#include "engines/gpu/packets/layout.hpp"
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

TEST(plan_numbers, divisions) {
  for (std::uint32_t divisor = 1; divisor < 3000; ++divisor) {
    const gpu::division by(divisor);
    for (const std::uint32_t n :
         {0U, 1U, divisor - 1, divisor, divisor + 1, 7 * divisor - 1, 7 * divisor, 1000003U,
          0x7fffffffU, 0x7fffffffU / divisor * divisor, 0x7fffffffU / divisor * divisor - 1})
      ASSERT_EQ(by.quotient(n), n / divisor) << n << " / " << divisor;
  }
  for (const std::uint32_t divisor : {1U << 20U, (1U << 30U) - 1, 1U << 30U, 0x7fffffffU}) {
    const gpu::division by(divisor);
    for (const std::uint32_t n : {divisor - 1, divisor, 0x7fffffffU})
      ASSERT_EQ(by.quotient(n), n / divisor) << n << " / " << divisor;
  }
  ASSERT_EQ(gpu::division().quotient(12345), 12345U) << "by one";
}

/// Rows of partial results: four elements a packet, and the statistics in the last.
TEST(plan_numbers, partial_results_of_attention) {
  for (const int width : {64, 128, 256}) {
    EXPECT_TRUE(gpu::has_kernel_for(width));
    EXPECT_EQ(gpu::packets_of_row(width), width / 4 + 1);
    gpu::attention_shape shape;
    shape.head_dim = width;
    shape.batch = 3;
    shape.kv_heads = 5;
    shape.group = 7;
    EXPECT_EQ(shape.items(), 15);
    EXPECT_EQ(shape.rows(), 105);
    EXPECT_EQ(shape.words(), width + 2) << "32 bits each, and two statistics";
    shape.partials = dtype::bf16;
    EXPECT_EQ(shape.words(), width / 2 + 1) << "16 bits each";
  }
  for (const int width : {0, 32, 96, 192, 512}) EXPECT_FALSE(gpu::has_kernel_for(width));
}

/// Rooms of attention: the last row of the last set, rank and block lies in them.
TEST(plan_numbers, rooms_of_attention) {
  for (const int width : {64, 128, 256}) {
    gpu::attention_shape shape;
    shape.head_dim = width;
    shape.batch = 3;
    shape.kv_heads = 2;
    shape.group = 4;
    for (const int ranks : {1, 2, 8}) {
      const std::size_t row = static_cast<std::size_t>(width) / 4 + 1;
      const std::size_t rows = 24;
      const auto all = static_cast<std::size_t>(ranks);
      const auto sent = gpu::attention_room::of(shape, ranks, 5, true, false);
      EXPECT_EQ(sent.inbox, 2 * rows * all * row) << "two sets";
      EXPECT_EQ(sent.outbox, 0U);
      EXPECT_EQ(sent.parts, 2U * 5 * 16 * (static_cast<std::size_t>(width) / 2 + 1));
      EXPECT_EQ(sent.rows, rows * all * (static_cast<std::size_t>(width) + 2));
      const auto followed = gpu::attention_room::of(shape, ranks, 5, false, true);
      EXPECT_EQ(followed.inbox, sent.inbox);
      EXPECT_EQ(followed.outbox, 2 * rows * row);
      EXPECT_EQ(gpu::attention_room::of(shape, ranks, 5, false, false).inbox, 1U);
    }
  }
}

/// Packets of collectives: each phase, set, source and packet has a place of its own, and all are
/// in the inbox; each block and receiver has a counter.
TEST(plan_numbers, places_of_packets) {
  for (const int ranks : {1, 2, 5}) {
    for (const bool passes_on : {false, true}) {
      const gpu::packet_layout how{
          .messages = gpu::message_table(ranks, 0), .capacity = 7, .passes_on = passes_on};
      std::set<std::int64_t> slots;
      for (int phase = 0; phase < (passes_on ? 2 : 1); ++phase)
        for (std::uint64_t epoch = 8; epoch < 10; ++epoch)
          for (int source = 0; source < ranks; ++source)
            for (std::int64_t i = 0; i < 7; ++i) {
              ASSERT_TRUE(slots.insert(how.slot(phase, epoch, source, i)).second);
              ASSERT_EQ(how.slot(phase, epoch, source, i), how.slot(phase, epoch + 2, source, i));
            }
      ASSERT_EQ(*slots.begin(), 0);
      ASSERT_EQ(static_cast<std::size_t>(*slots.rbegin()) + 1, how.slots());
      ASSERT_EQ(slots.size(), how.slots());
      std::set<int> counters;
      for (int block = 0; block < 3; ++block)
        for (int receiver = 0; receiver < ranks; ++receiver)
          ASSERT_TRUE(counters.insert(how.counter(block, receiver)).second);
      ASSERT_EQ(*counters.begin(), 0);
      ASSERT_EQ(*counters.rbegin() + 1, how.counter(3, 0)) << "as many as there are";
    }
  }
}

/// Raster groups: each cell once; a raster group's first columns come before its next ones, and all
/// of it before what is below; with k_interleave, columns equally far apart take turns.
TEST(plan_numbers, banded_grids) {
  for (int down = 1; down <= 9; ++down) {
    for (const int across : {1, 2, 3, 4, 6, 8, 12}) {
      for (int raster_rows = 1; raster_rows <= down; ++raster_rows) {
        for (const int k_interleave : {1, 2, 3, 4}) {
          if (across % k_interleave != 0) continue;
          const raster_grid grid{down, across, raster_rows, k_interleave};
          std::vector<std::pair<int, int>> wanted;
          for (int first = 0; first < down; first += raster_rows)
            for (int i = 0; i < across; ++i)
              for (int row = first; row < std::min(first + raster_rows, down); ++row)
                wanted.emplace_back(row,
                                    i % k_interleave * (across / k_interleave) + i / k_interleave);
          for (int turn = 0; turn < down * across; ++turn) {
            ASSERT_EQ(grid.at(turn).row, wanted[static_cast<std::size_t>(turn)].first);
            ASSERT_EQ(grid.at(turn).column, wanted[static_cast<std::size_t>(turn)].second);
          }
        }
      }
    }
  }
}

TEST(plan_numbers, hops_and_shares) {
  for (int world = 1; world <= 8; ++world) {
    for (int rank = 0; rank < world; ++rank) {
      std::set<int> peers;
      for (int hop = 0; hop < world; ++hop) {
        const int peer = receiver_at_hop(rank, hop, world);
        ASSERT_EQ(source_at_hop(peer, hop, world), rank);
        ASSERT_TRUE(peers.insert(peer).second);
        ASSERT_EQ(peer, (rank + hop) % world);
      }
    }
  }
  for (int workers = 1; workers <= 7; ++workers) {
    for (int count = 0; count <= 30; ++count) {
      std::set<int> all;
      for (int worker = 0; worker < workers; ++worker) {
        const strided share{worker, workers};
        int mine = 0;
        share.each(count, [&](int i) {
          ASSERT_EQ(i, share.at(mine++));
          ASSERT_TRUE(all.insert(i).second);
        });
        ASSERT_EQ(mine, share.share_of(count));
      }
      ASSERT_EQ(static_cast<int>(all.size()), count);
    }
  }
}

/// What no plan has filled in says that there is nothing: nothing is sent, awaited or moved.
TEST(plan_numbers, what_is_not_filled_in_does_nothing) {
  const strided all{0, 1};
  const sending_grid sends{};
  EXPECT_EQ(sends.turns(all), 0);
  EXPECT_EQ(sends.hops_together(), 0);
  EXPECT_EQ(sends.part_of(all).chunks, 0);
  EXPECT_EQ(sends.row_chunks + sends.in_row, 0);
  EXPECT_EQ(sends.rows + sends.columns + sends.hops, 0);
  EXPECT_FALSE(sends.at_once);
  EXPECT_TRUE(sends.counted) << "whoever does not know asks";
  EXPECT_EQ(sends.tma_tile_bytes(), 2U) << "chunks of one element";
  const receiving_grid receives{};
  EXPECT_EQ(receives.count(all), 0);
  EXPECT_EQ(receives.rank, 0);
  EXPECT_EQ(receives.ranks, 1);
  EXPECT_LT(incoming_chunk{}.ready, 0) << "there is none";
  EXPECT_EQ(awaited_chunks{}.count(), 0);
  EXPECT_EQ(awaited_chunks{}.end_of(0, 7), 7);
  EXPECT_EQ(packet_share().turns(), 0);
  packet_share nothing;
  EXPECT_EQ(nothing.take().row, -1);
  EXPECT_EQ(sent_tiles{}.turns(all), 0);
  const packet_thread nobody{};
  EXPECT_EQ(nobody.threads, 0);
  EXPECT_EQ(moving_blocks{}.senders + moving_blocks{}.blocks, 0);
  EXPECT_EQ(sender_beside({}, 0, 1), 0) << "none of no senders";
  EXPECT_FALSE(sends_packets({}, 0, 3));
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

}  // namespace
