// What somebody asks for is what a plan has: so many senders, so many workers at most; and where
// nobody asks, no plan is a worse one for it.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using plans_test::own_patterns;

constexpr int senders_asked[] = {1, 2, 3, 4, 5, 7, 16, 21};

/// Senders of clusters go by pairs, beside two blocks that multiply.
int paired(int asked, int num_sms) { return std::min((asked + 1) / 2 * 2, (num_sms - 2) / 2 * 2); }

operator_options options_of(pattern how, int senders, int workers) {
  operator_options options;
  options.how = how;
  options.senders = senders;
  options.workers = workers;
  return options;
}

void expect_senders(const gather_plan& p, const operator_options& o, int num_sms) {
  switch (o.how) {
    case pattern::fused_specialized:
      ASSERT_EQ(p.comm_ctas, paired(o.senders, num_sms));
      ASSERT_EQ(p.own_grid + p.streams, 0);
      break;
    case pattern::producer_consumer:
      ASSERT_EQ(p.own_grid, paired(o.senders, num_sms));
      ASSERT_EQ(p.comm_ctas + p.streams, 0);
      break;
    case pattern::copy_engine:
      ASSERT_EQ(p.streams, o.senders);
      ASSERT_EQ(p.protocol.senders, o.senders);
      ASSERT_EQ(p.comm_ctas + p.own_grid, 0);
      break;
    case pattern::bulk_synchronous:
      // As few as there are chunks for.
      ASSERT_GE(p.own_grid, 1);
      ASSERT_LE(p.own_grid, p.tma_tiles ? (o.senders + 1) / 2 * 2 : o.senders);
      ASSERT_EQ(p.comm_ctas + p.streams, 0);
      break;
    case pattern::fused_sequential:
      // All blocks move before they multiply, whatever somebody asks for.
      ASSERT_EQ(p.comm_ctas + p.own_grid + p.streams, 0);
      ASSERT_TRUE(p.who != gather_senders::all_ctas_first ||
                  p.protocol.senders == 4 * p.gemm.blocks());
      break;
    default:
      ASSERT_EQ(p.comm_ctas + p.own_grid + p.streams, 0);
      ASSERT_LE(p.protocol.senders, o.senders);
      // All that were asked for, where there is a warp for each.
      ASSERT_GE(p.protocol.senders, std::min(o.senders, p.gemm.blocks()));
  }
}

TEST(asked_for, senders_of_a_gather) {
  for (const pattern how : own_patterns) {
    for (const int senders : senders_asked) {
      for (const int num_sms : {132, 32, 8}) {
        for (const std::int64_t m : {16, 200, 4096}) {
          for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
            const operator_options o = options_of(how, senders, 0);
            SCOPED_TRACE(fmt::format("{} {} rows, by {}, {} senders of {}", name_of(how), m,
                                     name_of(gather), senders, num_sms));
            for (const gather_plan& p :
                 gather_plans({.m = m, .n = 4096, .k = 4096, .gather = gather}, 2, 0, o, num_sms)) {
              ASSERT_NO_FATAL_FAILURE(expect_senders(p, o, num_sms));
            }
          }
        }
      }
    }
  }
}

void expect_senders(const scatter_plan& p, const operator_options& o, int num_sms) {
  switch (o.how) {
    case pattern::fused_specialized:
      ASSERT_EQ(p.comm_ctas, paired(o.senders, num_sms));
      ASSERT_EQ(p.protocol.senders, p.comm_ctas);
      break;
    case pattern::producer_consumer:
      ASSERT_EQ(p.own_grid, paired(o.senders, num_sms));
      ASSERT_EQ(p.protocol.senders, p.own_grid);
      break;
    case pattern::copy_engine:
      ASSERT_EQ(p.streams, o.senders);
      break;
    case pattern::bulk_synchronous:
      ASSERT_GE(p.own_grid, 1);
      ASSERT_LE(p.own_grid, o.senders);
      ASSERT_EQ(p.protocol.senders, p.own_grid);
      break;
    default:
      ASSERT_EQ(p.comm_ctas + p.own_grid + p.streams, 0);
      ASSERT_EQ(p.protocol.senders, 1) << "the blocks that multiply are the one publisher";
  }
  ASSERT_EQ(p.protocol.workers, 1);
}

TEST(asked_for, senders_of_a_scatter) {
  for (const pattern how : own_patterns) {
    for (const int senders : senders_asked) {
      for (const int num_sms : {132, 32, 8}) {
        for (const std::int64_t m : {16, 200, 4096}) {
          const operator_options o = options_of(how, senders, 0);
          SCOPED_TRACE(
              fmt::format("{} {} rows, {} senders of {}", name_of(how), m, senders, num_sms));
          for (const scatter_plan& p : scatter_plans({m, 4096, 4096}, 2, 0, o, num_sms)) {
            ASSERT_NO_FATAL_FAILURE(expect_senders(p, o, num_sms));
          }
        }
      }
    }
  }
}

/// With as many workers as a plan has anyway it is the same plan; with fewer it has no more than
/// that; and what nobody asks for is as if all had been asked for.
template <class Plans>
void expect_workers(const Plans& plans, pattern how, int senders) {
  const auto usual = plans(options_of(how, senders, 0)).front();
  const auto with_all = plans(options_of(how, senders, 1000)).front();
  ASSERT_EQ(usual.text(), with_all.text());
  ASSERT_EQ(usual.gemm.cycles, with_all.gemm.cycles);
  for (const int workers : {2, 3, 8, 20, 61}) {
    const auto few = plans(options_of(how, senders, workers)).front();
    ASSERT_LE(few.gemm.blocks(), workers);
    ASSERT_GE(few.gemm.cycles, usual.gemm.cycles * 0.999);
  }
}

TEST(asked_for, workers) {
  for (const pattern how : own_patterns) {
    for (const std::int64_t m : {16, 300, 4096}) {
      SCOPED_TRACE(fmt::format("{}, {} rows", name_of(how), m));
      const auto gathers = [&](const operator_options& o) {
        return gather_plans({.m = m, .n = 4096, .k = 4096}, 2, 1, o, 132);
      };
      const auto scatters = [&](const operator_options& o) {
        return scatter_plans({m, 8192, 4096}, 2, 1, o, 132);
      };
      ASSERT_NO_FATAL_FAILURE(expect_workers(scatters, how, 6));
      ASSERT_NO_FATAL_FAILURE(expect_workers(gathers, how, 6));
    }
  }
}

/// Where nobody says how many move, the choice is as good as any that somebody could ask for, to
/// the model.
TEST(asked_for, nothing_is_no_worse_than_something) {
  for (const pattern how : {pattern::fused_specialized, pattern::producer_consumer}) {
    for (const std::int64_t m : {128, 1024, 4096}) {
      const double best =
          scatter_plans({m, 8192, 4096}, 4, 0, options_of(how, 0, 0), 132).front().gemm.cycles;
      for (int senders = 4; senders <= 16; senders += 2) {
        EXPECT_LE(best, scatter_plans({m, 8192, 4096}, 4, 0, options_of(how, senders, 0), 132)
                            .front()
                            .gemm.cycles)
            << m << " rows, " << senders << " senders";
      }
    }
  }
}

/// Streams of copy engines share the link, so to the model their number makes no difference.
TEST(asked_for, as_long_with_any_number_of_streams) {
  for (const std::int64_t m : {300, 4096}) {
    const auto cycles = [&](int streams) {
      return scatter_plans({m, 8192, 4096}, 4, 0, options_of(pattern::copy_engine, streams, 0), 132)
          .front()
          .gemm.cycles;
    };
    for (const int streams : {1, 3, 7}) EXPECT_EQ(cycles(streams), cycles(2)) << streams;
  }
}

/// Chunks of large shards: as large as who moves them is worth, or a row, where that is more.
TEST(asked_for, chunks_are_neither_too_large_nor_too_small) {
  int looked_at = 0;
  for (const pattern how : own_patterns) {
    for (const int senders : {0, 1, 2, 8}) {
      for (const std::int64_t m : {200, 4096, 40'000}) {
        for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
          operator_options o = options_of(how, senders, 0);
          for (const direction move : {direction::push, direction::pull}) {
            o.move = move;
            const gather_plan p =
                gather_plans({.m = m, .n = 4096, .k = 8192, .gather = gather}, 2, 0, o, 132)
                    .front();
            if (p.packets || p.tma_tiles || how == pattern::bulk_synchronous) continue;
            ++looked_at;
            SCOPED_TRACE(fmt::format("{} {}, {} rows by {}, {} senders: {}", name_of(how),
                                     name_of(move), m, name_of(gather), senders, p.text()));
            const std::int64_t row = p.protocol.panel_k * 2;
            const std::int64_t bytes = p.protocol.tile_m * row;
            const std::int64_t shard = m * 8192;  // bytes of a half
            const std::int64_t most = std::int64_t{p.streams > 0 ? 16 << 20 : 256 << 10};
            EXPECT_LE(bytes, std::max(most, row));
            EXPECT_GE(bytes, std::min<std::int64_t>(1 << 10, shard));
            EXPECT_TRUE(p.streams == 0 || bytes + row >= std::min<std::int64_t>(4 << 20, shard));
          }
        }
      }
    }
  }
  EXPECT_GT(looked_at, 20);
}

/// Epilogue warps move at a rate limit that the link takes, and no slower than is worth it.
TEST(asked_for, epilogue_warps_keep_a_rate_limit) {
  int looked_at = 0;
  for (const std::int64_t m : {256, 512, 700, 1024, 2048}) {
    for (const std::int64_t n : {3584, 7168, 28672}) {
      for (const int world : {2, 4, 8}) {
        const operator_options o = options_of(pattern::fused_warp_specialized, 0, 0);
        for (const gather_plan& p : gather_plans({.m = m, .n = n, .k = 8192}, world, 0, o, 132)) {
          if (p.who != gather_senders::epilogue_warps) continue;
          ++looked_at;
          EXPECT_GE(p.rate_limit, 200);
          EXPECT_LE(p.rate_limit, 300);
        }
      }
    }
  }
  EXPECT_GT(looked_at, 5);
}

}  // namespace
