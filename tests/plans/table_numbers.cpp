// The numbers that kernels of attention and of collectives use: sizes of rooms, places of packets;
// and the defaults of tables.
#include <cstdint>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/attention/arguments.hpp"
#include "engines/gpu/attention/shape.hpp"
#include "engines/gpu/packets/layout.hpp"
#include "engines/gpu/packets/messages.hpp"

namespace {

using namespace untax;

/// Blocks with the same number of whole items each, where that leaves at most one in 32 idle.
TEST(table_numbers, blocks_that_have_whole_items) {
  for (int items = 1; items < 700; ++items) {
    for (const int blocks : {1, 2, 31, 32, 33, 64, 78, 131, 132, 148}) {
      SCOPED_TRACE(fmt::format("{} items, {} blocks", items, blocks));
      const gpu::attention_split split(items, blocks);
      int some = blocks;  // no block has fewer items than these have
      while (some > 1 && (items + some - 1) / some == (items + some - 2) / (some - 1)) --some;
      const bool all_the_same = items % some == 0;
      const bool few_idle = 32 * (blocks - some) <= blocks;
      ASSERT_EQ(split.blocks, blocks);
      ASSERT_EQ(split.with_whole_items, all_the_same && few_idle ? some : blocks);
      ASSERT_EQ(split.by_blocks.quotient(1'000'003), 1'000'003 / blocks);
      ASSERT_EQ(split.by_whole.quotient(1'000'003), 1'000'003 / split.with_whole_items);
    }
  }
}

/// Rows of partial results: four elements a packet, and the statistics in the last.
TEST(table_numbers, partial_results_of_attention) {
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
TEST(table_numbers, rooms_of_attention) {
  for (const int width : {64, 128, 256}) {
    gpu::attention_shape shape;
    shape.head_dim = width;
    shape.batch = 3;
    shape.kv_heads = 2;
    shape.group = 4;
    for (const int ranks : {1, 2, 8}) {
      const std::size_t row = static_cast<std::size_t>(width) / 4 + 1;
      const std::size_t rows = 24;
      const auto count = static_cast<std::size_t>(ranks);
      const auto sent = gpu::attention_room::of(shape, ranks, 5, true, false);
      EXPECT_EQ(sent.inbox, 2 * rows * count * row) << "two sets";
      EXPECT_EQ(sent.outbox, 0U);
      EXPECT_EQ(sent.parts, 2U * 5 * 16 * (static_cast<std::size_t>(width) / 2 + 1));
      EXPECT_EQ(sent.rows, rows * count * (static_cast<std::size_t>(width) + 2));
      const auto followed = gpu::attention_room::of(shape, ranks, 5, false, true);
      EXPECT_EQ(followed.inbox, sent.inbox);
      EXPECT_EQ(followed.outbox, 2 * rows * row);
      EXPECT_EQ(gpu::attention_room::of(shape, ranks, 5, false, false).inbox, 1U);
    }
  }
}

/// Packets of collectives: each phase, set, source and packet has a place of its own, and all are
/// in the inbox; each block and receiver has a counter.
TEST(table_numbers, places_of_packets) {
  for (const int ranks : {1, 2, 5}) {
    for (const bool passes_on : {false, true}) {
      const gpu::packet_layout how{.messages = gpu::message_table(ranks, 0),
                                   .capacity = 7,
                                   .slabs = ranks,
                                   .passes_on = passes_on};
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

/// Words from the only other rank have one slab in each set of each phase.
TEST(table_numbers, places_of_words_between_two_ranks) {
  const gpu::packet_layout how{
      .messages = gpu::message_table(2, 1), .capacity = 7, .passes_on = true};
  std::set<std::int64_t> slots;
  for (const int phase : {0, 1})
    for (const std::uint64_t epoch : {8U, 9U})
      for (std::int64_t i = 0; i < 7; ++i) {
        ASSERT_EQ(how.slot(phase, epoch, 0, i), how.slot(phase, epoch, 1, i));
        ASSERT_TRUE(slots.insert(how.slot(phase, epoch, 0, i)).second);
      }
  EXPECT_EQ(slots.size(), how.slots());
  EXPECT_EQ(static_cast<std::size_t>(*slots.rbegin()) + 1, how.slots());
}

TEST(table_numbers, defaults_have_no_effect) {
  const gpu::message_table messages;
  EXPECT_EQ(messages.ranks, 1);
  EXPECT_EQ(messages.rank + messages.largest + messages.there[0], 0);
  EXPECT_EQ(messages.sent[0].size + messages.got[0].size, 0);
  const gpu::collective_kernel code;
  EXPECT_EQ(code.kernel, nullptr);
  EXPECT_EQ(code.first_argument.size(), 0U);
  EXPECT_EQ(code.threads + code.counters + code.element_bytes, 0);
  EXPECT_EQ(code.shared_bytes + code.inbox_bytes, 0U);
  const gpu::packet_layout packets;
  EXPECT_EQ(packets.capacity + packets.units + packets.total, 0);
  EXPECT_EQ(packets.root, -1);
  EXPECT_FALSE(packets.passes_on);
}

TEST(table_numbers, a_kernel_argument_holds_the_bytes_of_its_value) {
  const gpu::message_table sent(3, 1);
  gpu::kernel_argument argument(sent);
  ASSERT_EQ(argument.size(), sizeof sent);
  EXPECT_EQ(std::memcmp(argument.data(), &sent, sizeof sent), 0);
}

}  // namespace
