// The program of a gather brings all of A to every rank, once. That kernels do what it says is
// what lowered.cpp looks at.
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <untax/tile/order.hpp>

#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::each_plan;
using plans_test::gather_case;
using plans_test::gather_cases;
using plans_test::planned_gather;

constexpr std::uint64_t epochs = 5;

/// A chunk on its way.
struct sent {
  std::int64_t rows, columns;            // how large
  std::int64_t row, column;              // in the shard
  int peer;                              // to whom
  std::int64_t inbox_row, inbox_column;  // where
  int ready;                             // the counter that tells of it there
  std::uint64_t use;                     // what it says
  int free;                              // the counter that is waited for before; -1: none
  std::uint64_t freed;                   // until it has this
  auto operator<=>(const sent&) const = default;
};
std::ostream& operator<<(std::ostream& to, const sent& s) {
  return to << s.rows << " x " << s.columns << " at " << s.row << ", " << s.column << " to "
            << s.peer << " at " << s.inbox_row << ", " << s.inbox_column << ", ready " << s.ready
            << " = " << s.use << ", free " << s.free << " >= " << s.freed;
}

std::vector<sent> said_by_program(const all_gather_gemm_protocol& how, strided share,
                                  std::uint64_t epoch) {
  std::vector<sent> all;
  how.push(share, epoch, [&](const step& s) {
    const bool waits = s.reserve.free >= 0 && s.reserve.needed_free() > 0;
    all.push_back({s.rows, s.cols, s.from.row, s.from.col, s.to.rank, s.to.row, s.to.col,
                   s.publish.ready, s.publish.use, waits ? s.reserve.free : -1,
                   waits ? s.reserve.needed_free() : 0});
  });
  return all;
}

/// Copy engines carry out the same program in every run, since addresses in a captured graph stay.
TEST(gathers_send, by_copy_engines_the_same_in_every_run) {
  int looked_at = 0;
  each_plan(gather_cases(), [&](const planned_gather& p) {
    if (p.plan.streams == 0) return;
    ++looked_at;
    SCOPED_TRACE(p.text);
    ASSERT_EQ(p.plan.protocol.senders, p.plan.streams);
    for (int sender = 0; sender < p.plan.streams; ++sender) {
      const strided share{sender, p.plan.streams};
      auto first = said_by_program(p.how, share, 1);
      for (std::uint64_t epoch = 2; epoch <= epochs; ++epoch) {
        auto other = said_by_program(p.how, share, epoch);
        ASSERT_EQ(other.size(), first.size());
        for (std::size_t i = 0; i < other.size(); ++i) {
          // They wait for what the run before waited for, and say which run it is.
          ASSERT_EQ(other[i].use, epoch);
          other[i].use = first[i].use;
          other[i].free = first[i].free;
          other[i].freed = first[i].freed;
        }
        ASSERT_EQ(other, first);
      }
    }
  });
  EXPECT_GT(looked_at, 0);
}

/// Intervals of one dimension, that follow each other without a gap.
void expect_partition(const std::set<std::pair<std::int64_t, std::int64_t>>& parts,
                      std::int64_t begin, std::int64_t end) {
  for (const auto& [first, size] : parts) {
    ASSERT_EQ(first, begin);
    ASSERT_GT(size, 0);
    begin += size;
  }
  ASSERT_EQ(begin, end);
}

/// What comes to a rank in an epoch from one source, by all of its senders: the source's part of A.
void expect_lands(const planned_gather& from, int to, std::uint64_t epoch) {
  const int source = from.how.rank();
  const bool rows = from.problem.gather == gather_axis::rows;
  const range part = sharding{rows ? from.problem.m : from.problem.k, from.how.world(),
                              rows ? 1 : shard_granularity}
                         .of(source);
  std::set<std::pair<std::int64_t, std::int64_t>> down;
  std::set<std::pair<std::int64_t, std::int64_t>> across;
  std::set<std::pair<std::int64_t, std::int64_t>> corners;
  std::set<int> counters;
  const std::int64_t set_row = from.how.sets().set_of(epoch) * from.problem.m;
  const int senders = from.plan.protocol.senders;
  for (int sender = 0; sender < senders; ++sender) {
    for (const sent& s : said_by_program(from.how, {sender, senders}, epoch)) {
      if (s.peer != to) continue;
      ASSERT_EQ(s.inbox_row - set_row - (rows ? part.begin : 0), s.row);
      ASSERT_EQ(s.inbox_column - (rows ? 0 : part.begin), s.column);
      ASSERT_EQ(s.column % 8, 0) << "chunks begin at 16 bytes";
      ASSERT_EQ(s.columns % 8, 0);
      down.insert({s.inbox_row - set_row, s.rows});
      across.insert({s.inbox_column, s.columns});
      ASSERT_TRUE(corners.insert({s.inbox_row, s.inbox_column}).second) << "sent twice";
      ASSERT_TRUE(counters.insert(s.ready).second) << "told of by the same counter";
    }
  }
  if (part.empty() || (source == to && !from.how.collected())) {
    ASSERT_TRUE(corners.empty());
    return;
  }
  ASSERT_EQ(corners.size(), down.size() * across.size());
  expect_partition(down, rows ? part.begin : 0, rows ? part.end() : from.problem.m);
  expect_partition(across, rows ? 0 : part.begin, rows ? from.problem.k : part.end());
}

TEST(gathers_send, all_of_a_to_every_rank_once) {
  for (const gather_case& c : gather_cases()) {
    for (const planned_gather& from : c.ranks) {
      if (from.how.pulls()) continue;
      SCOPED_TRACE(from.text);
      for (int to = 0; to < from.how.world(); ++to) {
        expect_lands(from, to, 1);
        expect_lands(from, to, 2);
      }
    }
  }
}

/// Ranks agree on where things lie, and on their counters: they plan the same.
TEST(gathers_send, ranks_plan_the_same) {
  for (const gather_case& c : gather_cases()) {
    if (c.ranks.empty()) continue;
    const planned_gather& first = c.ranks.front();
    for (const planned_gather& other : c.ranks) {
      SCOPED_TRACE(other.text);
      const protocol_plan& a = first.plan.protocol;
      const protocol_plan& b = other.plan.protocol;
      ASSERT_EQ(b.rank, &other - c.ranks.data());
      ASSERT_EQ(b.world, static_cast<int>(c.ranks.size()));
      ASSERT_EQ(
          std::tie(a.how, a.move, a.workers, a.senders, a.tile_m, a.tile_n, a.panel_k,
                   a.chunk_cross, a.gather_own, a.fan_out, a.raster_rows, a.k_interleave, a.sets),
          std::tie(b.how, b.move, b.workers, b.senders, b.tile_m, b.tile_n, b.panel_k,
                   b.chunk_cross, b.gather_own, b.fan_out, b.raster_rows, b.k_interleave, b.sets));
      ASSERT_EQ(first.plan.text(), other.plan.text());
      ASSERT_EQ(first.plan.packets, other.plan.packets);
      ASSERT_EQ(first.plan.tma_tiles, other.plan.tma_tiles);
      ASSERT_EQ(first.plan.who, other.plan.who);
      ASSERT_EQ(first.how.counters(), other.how.counters());
      ASSERT_EQ(b.workers, 1) << "blocks that multiply are one worker";
      ASSERT_EQ(b.move, other.options.how == pattern::fused_specialized ||
                                other.options.how == pattern::producer_consumer
                            ? other.options.move
                            : direction::push);
    }
  }
}

}  // namespace
