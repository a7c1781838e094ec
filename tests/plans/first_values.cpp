// What plans and tables say that nobody has filled: nothing. No rows, no chunks, no counters; the
// first of everything; and one where numbers are divided by it. Code fills them field by field, and
// a field that it leaves out, since there is nothing of the kind, has to mean that. (Nothing is
// const here, so that it is filled when the test runs and not when it is compiled.)
#include <algorithm>
#include <cstring>
#include <initializer_list>

#include <gtest/gtest.h>

#include "engines/gpu/comm/bulk_gather.hpp"
#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/sending.hpp"
#include "engines/gpu/comm/sent_tiles.hpp"
#include "engines/gpu/copy/block_share.hpp"
#include "engines/gpu/gemm/cta_reads.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/sources/arrival_grid.hpp"
#include "engines/gpu/packets/layout.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"

namespace {

using namespace untax;

bool all_are(std::int64_t wanted, std::initializer_list<std::int64_t> values) {
  return std::ranges::all_of(values, [&](std::int64_t v) { return v == wanted; });
}

TEST(first_values, of_a_gemm) {
  auto [tile, begin, end] = gpu::work_tile{};
  EXPECT_EQ(tile, -1);
  EXPECT_FALSE(gpu::work_tile{}.valid());
  EXPECT_TRUE(all_are(0, {begin, end}));
  auto [m_tiles, n_tiles, k_blocks, k_blocks_per_stage, clusters, stream_k_tiles, raster_group,
        segments, part_k_blocks] = gpu::tile_schedule{};
  EXPECT_TRUE(all_are(0, {m_tiles, n_tiles, k_blocks, clusters, stream_k_tiles, part_k_blocks}));
  EXPECT_TRUE(all_are(1, {k_blocks_per_stage, segments}));
  EXPECT_GE(raster_group, 1);
  int alike = 0;
  for (const gpu::tile_config& c : gpu::tile_configs()) alike += c == gpu::tile_config{} ? 1 : 0;
  EXPECT_EQ(alike, 1) << "the configuration that nobody chose is one that there is";
  auto [m, n, k, type] = gpu::gemm_shape{};
  EXPECT_TRUE(all_are(0, {m, n, k}));
  EXPECT_EQ(gpu::gemm_plan{}.multicast_rows, 0);
  EXPECT_EQ(gpu::gemm_plan{}.cycles, 0);
  EXPECT_EQ(gpu::gemm_plan{}.blocks(), 0);
}

TEST(first_values, of_what_moves) {
  auto [data, rows, columns, stride] = gpu::matrix_at{};
  EXPECT_EQ(data, nullptr);
  EXPECT_TRUE(all_are(0, {rows, columns, stride}));
  auto [first, layers, between, tma_tile_rows, tma_tile_columns] = gpu::tma_tiles_at{};
  EXPECT_TRUE(all_are(1, {layers, tma_tile_rows, tma_tile_columns}));
  EXPECT_TRUE(all_are(0, {between, first.rows}));
  gpu::moved_operands moved;
  EXPECT_TRUE(all_are(0, {moved.a_stride, moved.inbox_stride, moved.outbox_stride,
                          moved.outbox_begin, moved.c_stride}));
  auto [share_rows, share_columns, share_count] = gpu::block_share{};
  EXPECT_TRUE(all_are(1, {share_rows, share_columns, share_count}));
  gpu::copied_rows copy;
  EXPECT_EQ(copy.to, nullptr);
  EXPECT_EQ(copy.from, nullptr);
  EXPECT_EQ(copy.to_pitch + copy.from_pitch + copy.row_bytes + copy.rows, 0U);
  gpu::run_arguments run;
  EXPECT_TRUE(all_are(0, {run.between, run.element_bytes, run.launch, run.name_size}));
  gpu::message_table messages;
  EXPECT_EQ(messages.ranks, 1);
  EXPECT_TRUE(all_are(0, {messages.rank, messages.largest, messages.there[0], messages.sent[0].size,
                          messages.got[0].size}));
  gpu::transfer_code code;
  EXPECT_EQ(code.kernel, nullptr);
  EXPECT_EQ(code.first_argument.size(), 0U);
  EXPECT_TRUE(all_are(0, {code.threads, code.counters, code.element_bytes,
                          static_cast<std::int64_t>(code.shared_bytes),
                          static_cast<std::int64_t>(code.inbox_bytes)}));
  gpu::packet_layout packets;
  EXPECT_TRUE(all_are(0, {packets.capacity, packets.total}));
  EXPECT_EQ(packets.root, -1);
  EXPECT_FALSE(packets.passes_on);
}

TEST(first_values, arguments_of_kernels_are_their_bytes) {
  const gpu::message_table sent(3, 1);
  gpu::kernel_argument argument(sent);
  ASSERT_EQ(argument.size(), sizeof sent);
  EXPECT_EQ(std::memcmp(argument.data(), &sent, sizeof sent), 0);
}

TEST(first_values, of_a_gather) {
  auto [turn, index, row, column, rows, columns] = outgoing_chunk{};
  EXPECT_TRUE(all_are(0, {turn, index, row, column, rows, columns}));
  sending_grid grid;
  EXPECT_TRUE(all_are(
      0, {grid.hops, grid.rows, grid.columns, grid.row_chunks, grid.in_row, grid.inbox_row,
          grid.inbox_column, grid.set_rows, grid.ready, grid.ready_set, grid.free, grid.free_set}));
  EXPECT_TRUE(all_are(1, {grid.raster_rows, grid.k_interleave, grid.first_hop, grid.chunk_rows,
                          grid.chunk_columns}));
  EXPECT_TRUE(grid.counted);
  EXPECT_FALSE(grid.at_once);
  EXPECT_EQ(grid.turns({0, 1}), 0);
  EXPECT_EQ(sending_grid::part{}.chunks, 0);
  EXPECT_EQ(sending_grid::sent_chunk{}.hop, 0);
  EXPECT_EQ(gpu::cta_read{}.cta + gpu::cta_read{}.cluster + gpu::cta_read{}.place, 0);
  EXPECT_EQ(range{}.begin + range{}.size, 0);
  EXPECT_EQ(gpu::row_span{}.begin, 0);
  EXPECT_EQ(gpu::row_span{}.count, 0);
  auto [first, in_row, awaited_rows, awaited_columns, awaited_row, begin, k_blocks] =
      awaited_chunks{};
  EXPECT_TRUE(all_are(0, {first, awaited_rows, awaited_columns, awaited_row, begin}));
  EXPECT_TRUE(all_are(1, {in_row, k_blocks}));
  arrival_grid arrivals;
  EXPECT_TRUE(arrivals.by_rows);
  EXPECT_TRUE(all_are(0, {arrivals.base, arrivals.set_size, arrivals.source_size, arrivals.rows,
                          arrivals.shard_rows, arrivals.last_source}));
  EXPECT_TRUE(all_are(1, {arrivals.shard_row_chunks, arrivals.chunk_rows, arrivals.chunk_k_blocks,
                          arrivals.in_row, arrivals.last_in_row}));
}

TEST(first_values, of_a_bulk_gather) {
  EXPECT_EQ(incoming_chunk{}.source, 0);
  EXPECT_EQ(incoming_chunk{}.ready, -1);
  receiving_grid grid;
  EXPECT_TRUE(all_are(0, {grid.rank, grid.hops, grid.last_source, grid.chunks, grid.last_chunks,
                          grid.ready, grid.ready_set, grid.ready_source}));
  EXPECT_TRUE(all_are(1, {grid.ranks, grid.first_hop}));
  EXPECT_EQ(grid.count({0, 1}), 0);
  bulk_gather all;
  EXPECT_EQ(all.senders, 1);
  // Only a negative number of the launch says that nothing is to be done.
  EXPECT_FALSE(all.dry());
  all.moved.run.launch = 1;
  EXPECT_FALSE(all.dry());
  all.moved.run.launch = -1;
  EXPECT_TRUE(all.dry());
}

TEST(first_values, of_packets) {
  auto [rows, columns, in_set, shard_rows] = packet_panel{};
  EXPECT_TRUE(all_are(0, {rows, columns, in_set}));
  EXPECT_EQ(shard_rows, 1);
  EXPECT_EQ(packet_share::place{}.row, -1);
  EXPECT_EQ(packet_share::place{}.column, 0);
  packet_share none;
  EXPECT_EQ(none.turns(), 0);
  for (int i = 0; i < 3; ++i) {
    const packet_share::place at = none.take();
    EXPECT_EQ(at.row, -1);
    EXPECT_EQ(at.column % packet_panel::elements, 0);
  }
}

TEST(first_values, of_plans) {
  gather_plan gather;
  EXPECT_EQ(gather.who, gather_senders::elsewhere);
  EXPECT_TRUE(all_are(0, {gather.comm_ctas, gather.own_grid, gather.streams, gather.rate_limit,
                          gather.segment_rows, gather.segment_k_blocks}));
  EXPECT_FALSE(gather.packets || gather.tma_tiles || gather.polls);
  scatter_plan scatter;
  EXPECT_EQ(scatter.way, scatter_way::store_to_peers);
  EXPECT_TRUE(
      all_are(0, {scatter.comm_ctas, scatter.own_grid, scatter.streams, scatter.split_rows}));
  EXPECT_TRUE(all_are(1, {scatter.parts, scatter.row_splits}));
  protocol_plan protocol;
  EXPECT_TRUE(all_are(1, {protocol.world, protocol.workers, protocol.senders, protocol.raster_rows,
                          protocol.k_interleave}));
  EXPECT_TRUE(all_are(0, {protocol.rank, protocol.chunk_cross}));
  EXPECT_EQ(protocol.sets, 2);
  EXPECT_FALSE(protocol.gather_own || protocol.fan_out);
  auto [flag, row, column, tile_rows, tile_columns] = sent_tile{};
  EXPECT_TRUE(all_are(0, {flag, row, column, tile_rows, tile_columns}));
  sent_tiles tiles;
  EXPECT_TRUE(all_are(0, {tiles.rows, tiles.columns, tiles.down, tiles.across, tiles.flags}));
  EXPECT_TRUE(
      all_are(1, {tiles.tile_rows, tiles.tile_columns, tiles.raster_rows, tiles.tma_tile_rows}));
  EXPECT_EQ(tiles.turns({0, 1}), 0);
}

}  // namespace
