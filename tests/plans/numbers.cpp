// The numbers of plans: shares of blocks, awaited chunks, senders; and their defaults.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/sources/segments.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/copy/block_share.hpp"
#include "engines/gpu/copy/matrix_at.hpp"
#include "engines/gpu/gemm/cta_reads.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace plans_test;
using namespace untax;

/// Shares are of one size, begin at multiples of the unit, and no more than asked for or than have
/// a word for each thread.
TEST(plan_numbers, shares_of_blocks) {
  each_round(2000, [](numbers& number) {
    constexpr std::int64_t some[] = {1, 4, 30, 300, 9000};
    const std::int64_t rows = number(1, number.one_of(some));
    const std::int64_t columns = 8 * number(1, number.one_of(some));
    const int most = number.count(1, 132);
    const std::int64_t unit = number(0, 1) == 0 ? 64 : 128;
    SCOPED_TRACE(fmt::format("{} x {}, {} blocks", rows, columns, most));
    const auto share = gpu::share_of_block(rows, columns, most, unit);
    const bool whole_rows = share.columns == columns;
    ASSERT_TRUE(share.rows >= 1 && share.rows <= rows);
    ASSERT_TRUE(share.columns >= 1 && share.columns <= columns);
    ASSERT_TRUE(whole_rows || (share.rows == 1 && share.columns % unit == 0)) << "parts of one";
    ASSERT_EQ(share.count, ceil_div(rows, share.rows) * ceil_div(columns, share.columns));
    const std::int64_t words = std::max<std::int64_t>(rows * columns * 2 / 4096, 1);
    const std::int64_t wanted = std::min<std::int64_t>(words, most);
    ASSERT_LE(share.count, wanted);
    // No fewer than so: one row less, or one unit less, would be too many.
    if (wanted <= rows) {
      ASSERT_TRUE(whole_rows);
      ASSERT_TRUE(share.rows == 1 || ceil_div(rows, share.rows - 1) > wanted);
    } else {
      ASSERT_TRUE(share.columns <= unit || ceil_div(columns, share.columns - unit) > wanted / rows);
    }
  });
}

/// Code fills plans field by field, so the default of a field has to mean that the plan has nothing
/// of the kind. All words of a default plan are zero but these.
template <class T>
void expect_words(const std::vector<int>& wanted) {
  static T value;  // of static memory also what lies between fields is zero
  std::vector<int> words(sizeof(T) / sizeof(int));
  std::memcpy(words.data(), &value, sizeof(T));
  std::erase(words, 0);
  EXPECT_EQ(words, wanted) << testing::internal::GetTypeName<T>();
}

TEST(plan_numbers, defaults_have_no_effect) {
  expect_words<range>({});
  expect_words<gpu::row_span>({});
  expect_words<gpu::matrix_at>({});
  expect_words<gpu::copied_rows>({});
  expect_words<gather_segments>({});
  expect_words<gather_segments::part>({});
  expect_words<packet_thread>({});
  expect_words<all_gather_gemm_protocol::chunk>({});
  expect_words<gpu::gemm_shape>({static_cast<int>(dtype::bf16)});
  expect_words<gpu::cta_read>({true});             // finishes
  expect_words<gpu::work_tile>({-1});              // no tile
  expect_words<gpu::tile_schedule>({1, 8, 1});     // k-blocks of a stage, raster group, segments
  expect_words<gpu::tma_tile_size>({1, 1});        // rows, columns
  expect_words<gpu::tma_tiles_at>({1, 1, 1});      // layers, rows, columns
  expect_words<gpu::block_share>({1, 1, 1});       // rows, columns, shares
  expect_words<moving_blocks>({1 << 8});           // by rows, in the second byte
  expect_words<incoming_chunk>({-1});              // no counter
  expect_words<receiving_grid>({1, 1});            // ranks, first hop
  expect_words<sent_shard>({true, 2});             // readers are counted; bytes of a chunk
  expect_words<comm::transfer>({-1, -1});          // no counters
  expect_words<awaited_chunks>({1, 1});            // chunks of a row, k-blocks of one
  expect_words<arrival_grid>({1, 1, 1, 1, 1, 1});  // by rows; and all that something is divided by
  expect_words<packet_panel>({1});                 // rows of a shard
  expect_words<packet_share::place>({-1});         // no row
  expect_words<packet_share>({1, -1, -1});         // packets of a row; none to send
  expect_words<gpu::moved_operands>({1});          // ranks
  // Ranks, sets, senders; then as above.
  expect_words<bulk_gather>({1, 2, 1, true, 2, 1, 1});
  expect_words<device_sum>({static_cast<int>(dtype::bf16), 1});  // phases
}

TEST(plan_numbers, default_plans_are_empty) {
  const gather_plan gather;
  EXPECT_EQ(gather.who, gather_senders::elsewhere);
  EXPECT_EQ(gather.comm_ctas + gather.own_grid + gather.streams + gather.rate_limit, 0);
  EXPECT_EQ(gather.segment_rows + gather.segment_k_blocks, 0);
  EXPECT_FALSE(gather.packets || gather.tma_tiles || gather.polls);
  EXPECT_EQ(gather.protocol.world * gather.protocol.workers * gather.protocol.senders, 1);
  EXPECT_EQ(gather.protocol.sets, 2);
  EXPECT_EQ(gather.gemm.blocks() + gather.gemm.multicast_rows, 0);
  EXPECT_EQ(gather.gemm.cycles, 0);
  const scatter_plan scatter;
  EXPECT_EQ(scatter.way, scatter_way::store_to_peers);
  EXPECT_EQ(scatter.comm_ctas + scatter.own_grid + scatter.streams + scatter.split_rows, 0);
  EXPECT_EQ(scatter.parts * scatter.row_splits, 1);
  packet_share none;
  EXPECT_EQ(none.turns(), 0);
  EXPECT_EQ(none.take().row, -1);
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
TEST(plan_numbers, awaited_chunks_overlap_their_tile) {
  numbers number(5);
  const auto some = [&](int least, int most) { return number.count(least, most); };
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

TEST(plan_numbers, senders_are_one_warp_of_some_blocks_or_all_warps) {
  constexpr int blocks = 9;
  constexpr int senders = 5;
  const moving_blocks some{gather_senders::warps, true, blocks, senders};
  const moving_blocks by_k{gather_senders::all_ctas_first, false, blocks, 4 * blocks};
  const moving_blocks by_rows{gather_senders::all_ctas_first, true, blocks, 4 * blocks};
  for (int i = 0; i < 4 * blocks; ++i) {
    const int block = i / 4;
    const int warp = i % 4;
    EXPECT_EQ(sends_packets(some, block, warp), warp == 3 && block < senders);
    EXPECT_EQ(sender_beside(some, block, warp), warp == 3 ? block : senders);
    EXPECT_EQ(sender_beside(by_rows, block, warp), i) << "a block's chunks together";
    // With gather = k own columns are multiplied while chunks come, so the warp that loads moves
    // last.
    EXPECT_EQ(sender_beside(by_k, block, warp), (warp == 0 ? 3 : warp - 1) * blocks + block);
  }
}

TEST(plan_numbers, a_warp_has_as_many_turns_as_its_first_thread_has_packets) {
  for (int rows = 1; rows < 100; ++rows)
    for (int thread = 0; thread < 64; ++thread)
      EXPECT_EQ(packet_share({.rows = rows, .columns = 4}, thread, 64).turns(),
                ceil_div(std::max(rows - thread / 32 * 32, 0), 64));
}

TEST(plan_numbers, rooms_are_numbered_by_set) {
  const sent_shard shard{.rows = 10, .ready = 5, .ready_set = 7, .listed_from = 2};
  for (const int set : {0, 1}) {
    EXPECT_EQ(shard.inbox_room(set, 3, 6, 9).number, 5 + 7 * set);
    EXPECT_EQ(shard.publish_counter(set, 6), 8 + 7 * set);
  }
  for (const int row : {8, 14}) EXPECT_EQ(shard.rows_of({.row = row, .rows = 4}), row == 8 ? 2 : 0);
  for (const planned_gather& p : gather_cases())
    ASSERT_EQ(sent_shard::of(p.how).listed_from, 0) << "all runs have the same rows";
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
