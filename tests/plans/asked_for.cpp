// What somebody asks for is what a plan has: so many movers, so many workers at most; and where
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

constexpr int movers_asked[] = {1, 2, 3, 4, 5, 7, 16, 21};

/// Movers of clusters go by pairs, beside two blocks that multiply.
int paired(int asked, int processors) {
  return std::min((asked + 1) / 2 * 2, (processors - 2) / 2 * 2);
}

operator_options options_of(pattern how, int movers, int workers) {
  operator_options options;
  options.how = how;
  options.movers = movers;
  options.workers = workers;
  return options;
}

void expect_movers(const gather_plan& p, const operator_options& o, int processors) {
  switch (o.how) {
    case pattern::fused_specialized:
      ASSERT_EQ(p.leading, paired(o.movers, processors));
      ASSERT_EQ(p.apart + p.streams, 0);
      break;
    case pattern::producer_consumer:
      ASSERT_EQ(p.apart, paired(o.movers, processors));
      ASSERT_EQ(p.leading + p.streams, 0);
      break;
    case pattern::copy_engine:
      ASSERT_EQ(p.streams, o.movers);
      ASSERT_EQ(p.protocol.movers, o.movers);
      ASSERT_EQ(p.leading + p.apart, 0);
      break;
    case pattern::bulk_synchronous:
      // As few as there are pieces for.
      ASSERT_GE(p.apart, 1);
      ASSERT_LE(p.apart, p.boxes ? (o.movers + 1) / 2 * 2 : o.movers);
      ASSERT_EQ(p.leading + p.streams, 0);
      break;
    case pattern::fused_sequential:
      // All blocks move before they multiply, whatever somebody asks for.
      ASSERT_EQ(p.leading + p.apart + p.streams, 0);
      ASSERT_TRUE(p.who != gather_movers::all_blocks || p.protocol.movers == 4 * p.gemm.blocks());
      break;
    default:
      ASSERT_EQ(p.leading + p.apart + p.streams, 0);
      ASSERT_LE(p.protocol.movers, o.movers);
      // All that were asked for, where there is a warp for each.
      ASSERT_GE(p.protocol.movers, std::min(o.movers, p.gemm.blocks()));
  }
}

TEST(asked_for, movers_of_a_gather) {
  for (const pattern how : own_patterns) {
    for (const int movers : movers_asked) {
      for (const int processors : {132, 32, 8}) {
        for (const std::int64_t m : {16, 200, 4096}) {
          for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
            const operator_options o = options_of(how, movers, 0);
            SCOPED_TRACE(fmt::format("{} {} rows, by {}, {} movers of {}", name_of(how), m,
                                     name_of(gather), movers, processors));
            for (const gather_plan& p : gather_plans(
                     {.m = m, .n = 4096, .k = 4096, .gather = gather}, 2, 0, o, processors)) {
              ASSERT_NO_FATAL_FAILURE(expect_movers(p, o, processors));
            }
          }
        }
      }
    }
  }
}

void expect_movers(const scatter_plan& p, const operator_options& o, int processors) {
  switch (o.how) {
    case pattern::fused_specialized:
      ASSERT_EQ(p.leading, paired(o.movers, processors));
      ASSERT_EQ(p.protocol.movers, p.leading);
      break;
    case pattern::producer_consumer:
      ASSERT_EQ(p.apart, paired(o.movers, processors));
      ASSERT_EQ(p.protocol.movers, p.apart);
      break;
    case pattern::copy_engine:
      ASSERT_EQ(p.streams, o.movers);
      break;
    case pattern::bulk_synchronous:
      ASSERT_GE(p.apart, 1);
      ASSERT_LE(p.apart, o.movers);
      ASSERT_EQ(p.protocol.movers, p.apart);
      break;
    default:
      ASSERT_EQ(p.leading + p.apart + p.streams, 0);
      ASSERT_EQ(p.protocol.movers, 1) << "the blocks that multiply are the one publisher";
  }
  ASSERT_EQ(p.protocol.workers, 1);
}

TEST(asked_for, movers_of_a_scatter) {
  for (const pattern how : own_patterns) {
    for (const int movers : movers_asked) {
      for (const int processors : {132, 32, 8}) {
        for (const std::int64_t m : {16, 200, 4096}) {
          const operator_options o = options_of(how, movers, 0);
          SCOPED_TRACE(
              fmt::format("{} {} rows, {} movers of {}", name_of(how), m, movers, processors));
          for (const scatter_plan& p : scatter_plans({m, 4096, 4096}, 2, 0, o, processors)) {
            ASSERT_NO_FATAL_FAILURE(expect_movers(p, o, processors));
          }
        }
      }
    }
  }
}

/// With as many workers as a plan has anyway it is the same plan; with fewer it has no more than
/// that; and what nobody asks for is as if all had been asked for.
template <class Plans>
void expect_workers(const Plans& plans, pattern how, int movers) {
  const auto usual = plans(options_of(how, movers, 0)).front();
  const auto with_all = plans(options_of(how, movers, 1000)).front();
  ASSERT_EQ(usual.text(), with_all.text());
  ASSERT_EQ(usual.gemm.cycles, with_all.gemm.cycles);
  for (const int workers : {2, 3, 8, 20, 61}) {
    const auto few = plans(options_of(how, movers, workers)).front();
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
      for (int movers = 4; movers <= 16; movers += 2) {
        EXPECT_LE(best, scatter_plans({m, 8192, 4096}, 4, 0, options_of(how, movers, 0), 132)
                            .front()
                            .gemm.cycles)
            << m << " rows, " << movers << " movers";
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

/// Pieces of large shards: as large as who moves them is worth, or a row, where that is more.
TEST(asked_for, pieces_are_neither_too_large_nor_too_small) {
  int looked_at = 0;
  for (const pattern how : own_patterns) {
    for (const int movers : {0, 1, 2, 8}) {
      for (const std::int64_t m : {200, 4096, 40'000}) {
        for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
          operator_options o = options_of(how, movers, 0);
          for (const direction move : {direction::push, direction::pull}) {
            o.move = move;
            const gather_plan p =
                gather_plans({.m = m, .n = 4096, .k = 8192, .gather = gather}, 2, 0, o, 132)
                    .front();
            if (p.packets || p.boxes || how == pattern::bulk_synchronous) continue;
            ++looked_at;
            SCOPED_TRACE(fmt::format("{} {}, {} rows by {}, {} movers: {}", name_of(how),
                                     name_of(move), m, name_of(gather), movers, p.text()));
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

/// Storers move at a pace that the link takes, and no slower than is worth it.
TEST(asked_for, storers_keep_a_pace) {
  int looked_at = 0;
  for (const std::int64_t m : {256, 512, 700, 1024, 2048}) {
    for (const std::int64_t n : {3584, 7168, 28672}) {
      for (const int world : {2, 4, 8}) {
        const operator_options o = options_of(pattern::fused_warp_specialized, 0, 0);
        for (const gather_plan& p : gather_plans({.m = m, .n = n, .k = 8192}, world, 0, o, 132)) {
          if (p.who != gather_movers::storers) continue;
          ++looked_at;
          EXPECT_GE(p.pace, 200);
          EXPECT_LE(p.pace, 300);
        }
      }
    }
  }
  EXPECT_GT(looked_at, 5);
}

}  // namespace
