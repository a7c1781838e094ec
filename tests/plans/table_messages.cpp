// Tables of messages, by which kernels of collectives send, receive and combine: carried out by
// hand, they bring every element where the collective is defined to, once, and listed parts make
// the same program as the parts themselves.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "engines/gpu/packets/messages.hpp"
#include "ops/all_to_all/protocol.hpp"
#include "ops/collectives_common/inner_shares.hpp"
#include "ops/collectives_common/tables.hpp"

namespace {

using namespace untax;
using gpu::message_table;
using gpu::messages_of;

/// Of an element of a result: whose input it is of, and which element of that.
using origin = std::pair<int, std::int64_t>;
using result = std::map<std::int64_t, origin>;

/// The result of every rank if all ranks follow their tables, as senders see it.
std::vector<result> as_sent(const std::vector<message_table>& tables) {
  std::vector<result> results(tables.size());
  for (const message_table& from : tables) {
    for (int to = 0; to < from.ranks; ++to) {
      for (std::int64_t i = 0; i < from.sent[to].size; ++i) {
        const bool is_new = results[static_cast<std::size_t>(to)]
                                .insert({from.there[to] + i, {from.rank, from.sent[to].begin + i}})
                                .second;
        EXPECT_TRUE(is_new) << "written twice";
      }
    }
  }
  return results;
}
/// The same as receivers see it: what comes is what was sent, in order.
std::vector<result> as_got(const std::vector<message_table>& tables) {
  std::vector<result> results(tables.size());
  for (const message_table& to : tables) {
    for (int from = 0; from < to.ranks; ++from) {
      const range& sent = tables[static_cast<std::size_t>(from)].sent[to.rank];
      EXPECT_EQ(to.got[from].size, sent.size);
      for (std::int64_t i = 0; i < sent.size; ++i)
        results[static_cast<std::size_t>(to.rank)][to.got[from].begin + i] = {from, sent.begin + i};
    }
  }
  return results;
}

template <class Parts>
std::vector<message_table> tables_of(const Parts& parts, int ranks) {
  std::vector<message_table> tables;
  for (int rank = 0; rank < ranks; ++rank) tables.push_back(messages_of(parts, ranks, rank));
  for (int rank = 0; rank < ranks; ++rank) {
    const message_table& table = tables[static_cast<std::size_t>(rank)];
    EXPECT_EQ(table.ranks, ranks);
    EXPECT_EQ(table.rank, rank);
    std::int64_t largest = 0;
    for (const message_table& any : tables)
      for (int to = 0; to < ranks; ++to) largest = std::max(largest, any.sent[to].size);
    EXPECT_EQ(table.largest, largest) << "room for the largest of all";
  }
  return tables;
}

/// Steps of a program, as far as peers can see them.
template <class Protocol>
std::vector<std::string> program_of(const Protocol& how) {
  std::vector<std::string> texts;
  for (int kernel = 0; kernel < how.kernels(); ++kernel) {
    for (int worker = 0; worker < how.kernel_at(kernel).workers; ++worker) {
      for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        how.program(kernel, worker, epoch, [&](const step& s) {
          texts.push_back(fmt::format(
              "{} {} {}: {} {} to {} {} {}; {} {} {}; {} {}; {} {} {}; {} {} {}",
              static_cast<int>(s.what), s.rows, s.cols, s.from.rank, s.from.col, s.to.rank,
              s.to.row, s.to.col, s.reserve.consumer, s.reserve.free, s.reserve.use,
              s.acquire.ready, s.acquire.use, s.publish.consumer, s.publish.ready, s.publish.use,
              s.retire.producer, s.retire.free, s.retire.use));
        });
      }
    }
  }
  return texts;
}

template <class Parts>
void expect_same_programs(const Parts& parts, int ranks) {
  for (const pattern how : {pattern::fused_sequential, pattern::bulk_synchronous}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const collective_plan plan{
          .world = ranks, .rank = rank, .how = how, .workers = 2, .chunk = 5, .depth = 8};
      const gpu::listed_parts listed{messages_of(parts, ranks, rank)};
      ASSERT_EQ(program_of(exchange_protocol<gpu::listed_parts>(listed, plan)),
                program_of(exchange_protocol<Parts>(parts, plan)));
      if (how != pattern::fused_sequential) continue;
      ASSERT_EQ(program_of(direct_exchange<gpu::listed_parts>(listed, plan)),
                program_of(direct_exchange<Parts>(parts, plan)));
    }
  }
}

constexpr std::int64_t counts[] = {0, 1, 5, 7, 8, 33, 100};

TEST(messages, of_an_all_gather) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const std::int64_t count : counts) {
      SCOPED_TRACE(fmt::format("{} elements, {} ranks", count, ranks));
      const gathered_parts parts{{count, ranks}};
      const auto tables = tables_of(parts, ranks);
      const std::int64_t each = (count + ranks - 1) / ranks;
      result wanted;
      for (std::int64_t i = 0; i < count; ++i) wanted[i] = {static_cast<int>(i / each), i % each};
      ASSERT_EQ(as_sent(tables), std::vector<result>(static_cast<std::size_t>(ranks), wanted));
      ASSERT_EQ(as_got(tables), as_sent(tables));
      expect_same_programs(parts, ranks);
    }
  }
}

TEST(messages, of_a_broadcast) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int root = 0; root < ranks; ++root) {
      const root_parts parts{9, root};
      const auto tables = tables_of(parts, ranks);
      result wanted;
      for (std::int64_t i = 0; i < 9; ++i) wanted[i] = {root, i};
      ASSERT_EQ(as_sent(tables), std::vector<result>(static_cast<std::size_t>(ranks), wanted));
      ASSERT_EQ(as_got(tables), as_sent(tables));
      expect_same_programs(parts, ranks);
    }
  }
}

TEST(messages, of_an_all_to_all) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < ranks * ranks; ++i) sizes.push_back(i * 7 % 5 * (i % 3));
    const unequal_parts parts{sizes.data(), ranks};
    const auto tables = tables_of(parts, ranks);
    std::vector<result> wanted(static_cast<std::size_t>(ranks));
    for (int to = 0; to < ranks; ++to) {
      std::int64_t at = 0;
      for (int from = 0; from < ranks; ++from) {
        std::int64_t begin = 0;
        for (int before = 0; before < to; ++before)
          begin += sizes[static_cast<std::size_t>(from * ranks + before)];
        for (std::int64_t i = 0; i < sizes[static_cast<std::size_t>(from * ranks + to)]; ++i)
          wanted[static_cast<std::size_t>(to)][at++] = {from, begin + i};
      }
    }
    ASSERT_EQ(as_sent(tables), wanted);
    ASSERT_EQ(as_got(tables), wanted);
    expect_same_programs(parts, ranks);
    const equal_parts equal{6};
    const std::vector<std::int64_t> sixes(static_cast<std::size_t>(ranks * ranks), 6);
    ASSERT_EQ(as_sent(tables_of(equal, ranks)),
              as_sent(tables_of(unequal_parts{sixes.data(), ranks}, ranks)));
    ASSERT_EQ(as_got(tables_of(equal, ranks)), as_sent(tables_of(equal, ranks)));
    expect_same_programs(equal, ranks);
  }
}

/// Every rank combines as many elements from all as it sends itself, and passes them on.
TEST(messages, of_reductions) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const std::int64_t count : counts) {
      for (const reduce_target target : {reduce_target::owner, reduce_target::everywhere}) {
        for (const int phases : {1, 2}) {
          if (phases == 2 && target == reduce_target::owner) continue;
          SCOPED_TRACE(fmt::format("{} elements, {} ranks, {} phases", count, ranks, phases));
          std::vector<message_table> tables;
          for (int rank = 0; rank < ranks; ++rank)
            tables.push_back(
                reduced_messages(count, target, {.world = ranks, .rank = rank, .phases = phases}));
          for (const message_table& t : tables) {
            const range own = t.sent[t.rank];
            for (const message_table& from : tables) {
              ASSERT_EQ(from.sent[t.rank].begin, own.begin) << "what is combined is the same part";
              ASSERT_EQ(from.sent[t.rank].size, own.size);
              ASSERT_EQ(from.largest, t.largest);
              ASSERT_GE(t.largest, from.sent[t.rank].size);
            }
            // Where the rank's own part of the combination lands, and those that are passed on.
            const sharding shards{count, ranks};
            const bool everywhere = target == reduce_target::everywhere;
            const bool straight = everywhere && phases == 1;
            ASSERT_EQ(own.begin, straight ? 0 : shards.of(t.rank).begin);
            ASSERT_EQ(own.size, straight ? count : shards.of(t.rank).size);
            ASSERT_EQ(t.got[t.rank].begin, everywhere ? own.begin : 0);
            ASSERT_EQ(t.got[t.rank].size, own.size);
            for (int peer = 0; peer < ranks; ++peer) {
              if (peer == t.rank) continue;
              ASSERT_EQ(t.got[peer].size, everywhere && !straight ? shards.of(peer).size : 0);
              ASSERT_TRUE(t.got[peer].empty() || t.got[peer].begin == shards.of(peer).begin);
            }
          }
        }
      }
    }
  }
}

/// The root sends each rank a part, which passes it on: all have all.
TEST(messages, of_a_relay) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (int root = 0; root < ranks; ++root) {
      for (const std::int64_t count : {0, 1, 5, 100, 9000}) {
        SCOPED_TRACE(fmt::format("{} elements, {} ranks, root {}", count, ranks, root));
        const ownership owners{inner_shares(count, ranks - 1), root + 1, ranks};
        std::vector<message_table> tables;
        for (int rank = 0; rank < ranks; ++rank)
          tables.push_back(relayed_messages(owners, root, {.world = ranks, .rank = rank}));
        const message_table& of_root = tables[static_cast<std::size_t>(root)];
        std::vector<int> times(static_cast<std::size_t>(count));
        for (const message_table& t : tables) {
          ASSERT_EQ(t.largest, of_root.largest);
          ASSERT_TRUE(t.got[root].empty()) << "nothing comes back from the root as its own";
          ASSERT_TRUE(t.sent[root].empty()) << "the root has all";
          if (t.rank == root) continue;
          const range sent = of_root.sent[t.rank];
          ASSERT_LE(sent.size, t.largest);
          for (std::int64_t i = 0; i < sent.size; ++i)
            ++times[static_cast<std::size_t>(sent.begin + i)];
          for (const message_table& other : tables) {
            if (other.rank == root) continue;
            ASSERT_EQ(other.got[t.rank].begin, sent.begin);
            ASSERT_EQ(other.got[t.rank].size, sent.size);
            // An owner passes on its part, for every receiver.
            ASSERT_EQ(t.sent[other.rank].begin, sent.begin);
            ASSERT_EQ(t.sent[other.rank].size, sent.size);
          }
          ASSERT_EQ(t.got[root].size, 0);
        }
        ASSERT_EQ(of_root.sent[root].size, 0);
        for (const int sent : times) ASSERT_EQ(sent, 1);
      }
    }
  }
}

TEST(messages, are_limited_to_sixteen_ranks) {
  EXPECT_NO_THROW(message_table(16, 0));
  EXPECT_THROW(message_table(17, 0), error);
}

}  // namespace
