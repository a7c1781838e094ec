// Sums of GEMMs over ranks: the slabs that ranks send each other, the owners of rows, the blocks
// that add, and the rows with which a rank begins.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/gemm/kernels.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using gpu::peer_slabs;
using gpu::sum_fragments;

/// Beside so many that multiply in pairs.
int most_beside(int places) { return (places - 2) / 2 * 2; }

TEST(slabs, each_of_two_sets_has_a_slab_of_each_rank) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const peer_slabs how{.own_rank = 0, .ranks = ranks};
    std::set<int> numbers;
    std::set<int> counters;
    for (const std::uint64_t epoch : {7U, 8U}) {
      for (int peer = 0; peer < ranks; ++peer) {
        const room r = how.slab(peer, 0, epoch);
        EXPECT_EQ(r.producer, peer);
        EXPECT_EQ(r.consumer, 0);
        EXPECT_EQ(r.number, how.slab_of(peer, epoch));
        EXPECT_LT(r.number, 2 * ranks) << "what the inbox has room for";
        numbers.insert(r.number);
        // By which an owner says that its words are put back, at the rank that sends there.
        counters.insert(how.slab(0, peer, epoch).free);
        // Two epochs later it is the same slab, used once more.
        const room next = how.slab(peer, 0, epoch + 2);
        EXPECT_EQ(next.number, r.number);
        EXPECT_EQ(next.free, r.free);
        EXPECT_EQ(next.use, r.use + 1);
      }
    }
    EXPECT_EQ(numbers.size(), static_cast<std::size_t>(2 * ranks));
    EXPECT_EQ(counters.size(), static_cast<std::size_t>(2 * ranks));
    // And one of each owner that says that its results have landed, in every epoch.
    for (int owner = 0; owner < ranks; ++owner) {
      const room landed = how.landed(owner, ranks - 1, 9);
      EXPECT_EQ(landed.producer, owner);
      EXPECT_EQ(landed.consumer, ranks - 1);
      EXPECT_EQ(landed.number, landed.ready);
      EXPECT_EQ(landed.use, 9U);
      EXPECT_EQ(how.landed(owner, 0, 10).ready, landed.ready);
      counters.insert(landed.ready);
    }
    EXPECT_EQ(counters.size(), static_cast<std::size_t>(3 * ranks));
    EXPECT_EQ(*counters.begin(), 0);
    EXPECT_EQ(*counters.rbegin() + 1, how.counters());
  }
}

TEST(slabs, owners_have_all_rows_once) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 300; ++round) {
      sum_fragments how;
      how.ranks = static_cast<int>(number(1, 8));
      how.m = static_cast<int>(number(1, round % 2 == 0 ? 40 : 700));
      how.tile_m = static_cast<int>(16 * number(1, 8));
      how.everywhere = number(0, 3) == 0;
      how.split();
      SCOPED_TRACE(testing::Message() << how.m << " rows, " << how.ranks << " ranks, tiles of "
                                      << how.tile_m << ", seed " << seed);
      int end = 0;
      int most = 0;
      for (int owner = 0; owner < how.ranks; ++owner) {
        ASSERT_EQ(how.first_row(owner), how.everywhere ? 0 : end) << "where the owner before ends";
        ASSERT_LE(how.first_row(owner), how.end_row(owner));
        end = how.end_row(owner);
        std::set<int> tiles;
        for (int row = how.first_row(owner); row < end; ++row) tiles.insert(row / how.tile_m);
        ASSERT_EQ(how.tiles_of(owner), static_cast<int>(tiles.size()));
        if (!tiles.empty()) {
          ASSERT_EQ(how.first_tile(owner), *tiles.begin());
        }
        most = std::max(most, how.tiles_of(owner));
        // Rows from some row on, of which the owner has one, or not.
        for (int row = 0; row < how.m + 2; ++row) {
          for (const int rows : {1, 8, 16}) {
            bool some = false;
            for (int i = row; i < row + rows; ++i) some |= i >= how.first_row(owner) && i < end;
            ASSERT_EQ(sum_fragments::meet(how.first_row(owner), end, row, rows), some)
                << rows << " rows from " << row;
          }
        }
      }
      ASSERT_EQ(end, how.m);
      ASSERT_EQ(how.most_tiles(), most);
    }
  }
}

/// A lane has four numbers of a fragment, of four bytes or of two.
TEST(slabs, have_bytes_for_every_fragment_of_every_rank_twice) {
  for (const bool halves : {false, true}) {
    sum_fragments how;
    how.ranks = 3;
    how.m = 700;
    how.split();
    how.n = 520;
    how.col_tiles = 3;
    how.halves = halves;
    const int bytes = halves ? 256 : 512;
    EXPECT_EQ(how.fragment_bytes(), bytes);
    // An owner's 234 rows touch three tiles of 128 at most, of 2 x 4 x 32 fragments each.
    EXPECT_EQ(how.slab_bytes(), std::int64_t{3 * 3 * 256} * bytes);
    EXPECT_EQ(how.inbox_bytes(), std::int64_t{2 * 3 * 3 * 3 * 256} * bytes);
  }
}

TEST(slabs, fragments_cover_the_columns_of_every_tile) {
  for (const gpu::tile_config& c : gpu::gemm_kernels)
    EXPECT_EQ(gpu::subtiles_of(c) * gpu::subtile_parts(c) * 8, gpu::share_columns(c));
}

TEST(slabs, masks_select_the_fragments_inside_c) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 20'000; ++round) {
      sum_fragments how;
      how.swap_ab = round % 2 == 0;
      how.parts = static_cast<int>(number(1, 32));
      how.tile_m = how.swap_ab ? 8 * how.parts : 128;
      how.tile_n = how.swap_ab ? 128 : 8 * how.parts;
      how.m = static_cast<int>(number(1, 700));
      how.n = static_cast<int>(8 * number(1, 40));
      const int first = static_cast<int>(number(0, how.m));
      const int end = static_cast<int>(number(first, how.m));
      gpu::sum_fragment f{static_cast<int>(number(0, 5)), static_cast<int>(number(0, 2)),
                          static_cast<int>(number(0, 1)), static_cast<int>(number(0, 3)),
                          static_cast<int>(number(0, how.parts - 1))};
      const int together = static_cast<int>(number(1, 32));
      const unsigned mask = how.mask_of(first, end, f, together);
      for (int i = 0; i < 32; ++i) {
        gpu::sum_fragment fragment = f;
        fragment.part += i;
        const bool present =
            i < together && fragment.part < how.parts && how.col_of(fragment) < how.n;
        const bool wanted =
            present && sum_fragments::meet(first, end, how.row_of(fragment), how.fragment_rows());
        ASSERT_EQ((mask >> static_cast<unsigned>(i) & 1U) != 0, wanted)
            << "seed " << seed << ", round " << round << ", fragment " << i;
      }
    }
  }
}

TEST(slabs, fragments_behind_the_last_column_are_left_out) {
  for (const bool swap_ab : {false, true}) {
    sum_fragments how;
    how.m = 128;
    how.split();
    how.n = swap_ab ? 32 : 24;
    how.swap_ab = swap_ab;
    how.groups = 1;
    for (int i = 0; i < 4; ++i) {
      gpu::sum_fragment f;
      (swap_ab ? f.warp : f.part) = i;
      EXPECT_EQ(how.wanted(0, f), how.col_of(f) < how.n) << how.col_of(f);
      EXPECT_EQ(how.wanted(0, f), i < (swap_ab ? 2 : 3));
    }
  }
}

TEST(first_plans, have_the_default_values) {
  const gpu::tile_config c;
  EXPECT_EQ(c, (gpu::tile_config{256, 2, 4, false, 2, false, 1}));
  const sums_plan plan;
  EXPECT_EQ(plan.comm_ctas + plan.own_grid, 0);
  EXPECT_FALSE(plan.beside);
  const sum_fragments sums;
  EXPECT_EQ(sums.own_rank + sums.m + sums.n + sums.first_row_tile, 0);
  EXPECT_FALSE(sums.everywhere || sums.halves || sums.swap_ab || sums.passes_on);
  EXPECT_EQ(sums.ranks * sums.row_tiles * sums.col_tiles * sums.raster_rows, 1);
  EXPECT_EQ(sums.tile_m, 128);
  EXPECT_EQ(sums.tile_n, 256);
  EXPECT_EQ(sums.groups, 2);
  EXPECT_EQ(sums.parts, 32);
  EXPECT_EQ(gpu::sum_fragment{}, (gpu::sum_fragment{0, 0, 0, 0, 0}));
  const comm::sender_program senders;
  EXPECT_EQ(senders.rank, 0);
  EXPECT_EQ(senders.world * senders.count, 1);
  EXPECT_EQ(senders.sets.sets, 2);
}

TEST(limits, adding_blocks_come_in_pairs_and_leave_room_for_two_that_multiply) {
  for (const pattern how :
       {pattern::producer_consumer, pattern::fused_sequential, pattern::fused_specialized}) {
    for (const int senders : {0, 1, 2, 5, 40}) {
      for (int places = 6; places <= 40; ++places) {
        SCOPED_TRACE(fmt::format("{}, {} senders, {} SMs", name_of(how), senders, places));
        const device_sum sum{"a sum", 300, 264, 328};
        const auto plans = sums_plans(sum, 2, 1, {.how = how, .senders = senders}, {places});
        const int asked = senders == 0 ? 8 : (senders + 1) / 2 * 2;
        for (const sums_plan& p : plans) {
          ASSERT_EQ(p.own_grid, std::min(asked, most_beside(places)));
          ASSERT_EQ(p.comm_ctas, how == pattern::fused_specialized ? p.own_grid : 0);
          ASSERT_EQ(p.beside, how == pattern::producer_consumer);
          const bool alone = how == pattern::fused_sequential;
          ASSERT_LE(p.gemm.blocks() + (alone ? 0 : p.own_grid), places);
          // Those that add when they have multiplied are all, of one kernel or of two.
          const int warps = alone ? p.gemm.blocks() * 8 : p.own_grid * 12;
          ASSERT_EQ(p.adding_warps(true), warps);
          ASSERT_EQ(p.adding_warps(false), p.own_grid * 12);
        }
      }
    }
  }
}

TEST(limits, ranks_begin_with_the_rows_of_the_next_rank) {
  for (const int ranks : {2, 3, 4}) {
    for (const std::int64_t m : {130, 300, 1000, 4096}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const device_sum sum{"a sum", m, 1024, 2048};
        for (const sums_plan& p : sums_plans(sum, ranks, rank, {.how = pattern::fused_sequential},
                                             {plans_test::num_sms})) {
          SCOPED_TRACE(fmt::format("{} rows, rank {} of {}, {}", m, rank, ranks, p.text()));
          const gpu::sum_fragments& how = p.how;
          const int cluster = p.gemm.config.cluster;
          ASSERT_LT(how.first_row_tile, std::max(how.row_tiles, 1));
          if (how.swap_ab) {
            ASSERT_EQ(how.first_row_tile, 0);
            continue;
          }
          ASSERT_EQ(how.raster_rows, p.gemm.schedule.raster_group * cluster);
          ASSERT_EQ(how.first_row_tile % cluster, 0) << "clusters stay whole";
          const int row = how.first_row_tile * how.tile_m;
          const int before = row - cluster * how.tile_m;
          if (how.first_row_tile == 0) {
            // Behind the own rows there is no whole cluster.
            ASSERT_GT(how.end_row(rank), (how.row_tiles - cluster) * how.tile_m);
          } else {
            ASSERT_GE(row, how.end_row(rank));
            ASSERT_LT(before, how.end_row(rank)) << "the first such cluster";
          }
        }
      }
    }
  }
}

}  // namespace
