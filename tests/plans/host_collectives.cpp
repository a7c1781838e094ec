// How a collective is cut: what options say is done, what they leave open follows the rules of
// their comments.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include <untax/ops/collective_problems.hpp>

#include "ops/collectives_common/direct_reduce.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/collectives_common/pushed_reduce.hpp"
#include "ops/collectives_common/reduce_protocol.hpp"
#include "tests/errors.hpp"

namespace untax {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

constexpr std::int64_t kib = 1024;

collective_need need_of(std::int64_t total, bool two_phases, touched memory = touched::both,
                        dtype type = dtype::f32) {
  return {.name = "op",
          .type = type,
          .largest = total / 4,
          .largest_one = total,
          .total = total,
          .can_have_two_phases = two_phases,
          .by_peers = memory};
}

collective_plan plan_of(int world, const collective_need& need, const collective_options& options) {
  return plan_collective(world, world - 1, need, options).plan;
}

TEST(collective_plans, take_two_phases_from_64_kib_and_3_ranks_on) {
  const auto phases = [](int world, std::int64_t bytes, bool can = true) {
    return plan_of(world, need_of(bytes / 4, can), {.workers = 1}).phases;
  };
  EXPECT_EQ(phases(3, 64 * kib - 4), 1);
  EXPECT_EQ(phases(3, 64 * kib), 2);
  EXPECT_EQ(phases(2, 64 * kib), 1);
  EXPECT_EQ(phases(2, 6400 * kib), 1);
  EXPECT_EQ(phases(8, 6400 * kib), 2);
  EXPECT_EQ(phases(8, 6400 * kib, false), 1);
  EXPECT_EQ(plan_of(1, need_of(100000, true), {.phases = 2, .workers = 1}).phases, 1);
  EXPECT_EQ(plan_of(2, need_of(10, true), {.phases = 2, .workers = 1}).phases, 2);
  EXPECT_EQ(plan_of(3, need_of(100000, true), {.phases = 1, .workers = 1}).phases, 1);
  // Directly in place some would still read what others write.
  EXPECT_EQ(plan_of(2, need_of(10, true), {.workers = 1, .direct = true}).phases, 2);
  EXPECT_EQ(plan_of(2, need_of(10, true, touched::result), {.workers = 1, .direct = true}).phases,
            1);
}

TEST(collective_plans, cut_each_workers_share_into_chunks) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const dtype type = trial % 2 == 0 ? dtype::f32 : dtype::bf16;
    const auto size = static_cast<std::int64_t>(size_of(type));
    const auto total =
        static_cast<std::int64_t>(random() % 3 == 0 ? random() % 5000000 : random() % 5000);
    const collective_need need = need_of(total, true, touched::both, type);
    const int workers = 1 + static_cast<int>(random() % 9);
    const int phases = 1 + static_cast<int>(random() % 2);
    const int depth = static_cast<int>(random() % 7);
    const std::int64_t bytes =
        random() % 2 == 0 ? 0 : 1 + static_cast<std::int64_t>(random() % 3000);
    const bool bulk = random() % 3 == 0;
    const collective_plan plan =
        plan_of(3, need,
                {.how = bulk ? pattern::bulk_synchronous : pattern::automatic,
                 .phases = phases,
                 .workers = workers,
                 .chunk_bytes = bytes,
                 .depth = depth});
    const std::int64_t part =
        std::max<std::int64_t>(phases == 2 ? need.largest : need.largest_one, 1);
    EXPECT_EQ(plan.workers, workers);
    EXPECT_EQ(plan.phases, phases);
    EXPECT_EQ(plan.world, 3);
    EXPECT_EQ(plan.rank, 2);
    EXPECT_EQ(plan.how, bulk ? pattern::bulk_synchronous : pattern::fused_sequential);
    if (bytes > 0) {
      EXPECT_EQ(plan.chunk, std::min(part, std::max<std::int64_t>(bytes / size, 1)));
    } else {
      // A share each, in whole vectors of 16 bytes, and not more than 128 KiB.
      const std::int64_t line = 16 / size;
      const std::int64_t share = ((part + workers - 1) / workers + line - 1) / line * line;
      EXPECT_EQ(plan.chunk, std::min({part, std::max(share, line), 128 * kib / size})) << part;
    }
    const std::int64_t of_part = ((total == 0    ? 0
                                   : phases == 2 ? need.largest
                                                 : total) +
                                  plan.chunk - 1) /
                                 plan.chunk;
    const std::int64_t of_worker = (of_part + workers - 1) / workers;
    const auto two_epochs = static_cast<int>(std::max<std::int64_t>(2 * of_worker, 1));
    EXPECT_EQ(plan.depth, bulk ? two_epochs : std::min(depth > 0 ? depth : 4, two_epochs));
  }
}

TEST(collective_plans, know_whether_they_have_rooms) {
  for (const touched memory : {touched::result, touched::input, touched::both}) {
    for (const input_path inputs :
         {input_path::automatic, input_path::in_place, input_path::rooms}) {
      for (int phases = 0; phases <= 2; ++phases) {
        for (int world = 1; world <= 3; ++world) {
          const collective_plan plan = plan_of(world, need_of(4000, true, memory),
                                               {.phases = phases,
                                                .workers = 2,
                                                .depth = 3,
                                                .keepers = 5,
                                                .direct = true,
                                                .inputs = inputs});
          const bool sends = inputs == input_path::rooms && memory != touched::result;
          EXPECT_EQ(plan.pushes, sends && memory == touched::both && phases != 1 && world > 1);
          EXPECT_EQ(plan.direct, !sends || plan.pushes);
          EXPECT_EQ(plan.keepers, plan.direct && memory == touched::result ? 5 : 0);
          if (plan.direct && !plan.pushes) {
            EXPECT_EQ(plan.depth, 1);
            EXPECT_EQ(way_of(plan), memory == touched::result ? "direct, without rooms, 5 keepers"
                                                              : "direct, without rooms");
          } else {
            EXPECT_GT(plan.depth, 1);
            EXPECT_EQ(way_of(plan), (plan.pushes ? "direct, inputs through " : "") +
                                        std::to_string(plan.depth) + " rooms in turn");
          }
        }
      }
    }
  }
  EXPECT_FALSE(plan_of(3, need_of(4000, true), {.keepers = 5}).direct);
  EXPECT_EQ(plan_of(3, need_of(4000, true), {.keepers = 5}).keepers, 0);
}

TEST(collective_plans, cut_directly_forwarded_shares_into_eighths) {
  const auto chunk = [](std::int64_t total, int phases, int workers) {
    return plan_of(3, need_of(total, true), {.phases = phases, .workers = workers, .direct = true})
        .chunk;
  };
  EXPECT_EQ(chunk(4000, 1, 2), 4000) << "in one phase a share lies together";
  EXPECT_EQ(chunk(16 << 20, 1, 2), 16 << 20);
  EXPECT_EQ(chunk(400, 2, 1), 100) << "no more than there is";
  EXPECT_EQ(chunk(1 << 16, 2, 1), 16 * kib / 4) << "an eighth of 64 KiB is too little";
  EXPECT_EQ(chunk(1 << 18, 2, 1), 32 * kib / 4);
  EXPECT_EQ(chunk(1 << 20, 2, 1), 128 * kib / 4);
  EXPECT_EQ(chunk(3 << 18, 2, 1), 96 * kib / 4);
  EXPECT_EQ(chunk(3 << 19, 2, 2), 96 * kib / 4);
  EXPECT_EQ(chunk(1 << 24, 2, 1), 128 * kib / 4);
}

TEST(collective_plans, refuse_impossible_options) {
  const auto refused = [](const collective_options& options, const std::string& why,
                          bool two = true) {
    expect_error(error_of([&] { (void)plan_of(3, need_of(100, two), options); }),
                 errc::invalid_argument, {"rank 2: op", why});
  };
  refused({.workers = -1}, "option workers is -1; it has to be between 0 (untax chooses) and 84");
  refused({.workers = 85}, "option workers is 85");
  refused({.chunk_bytes = (std::int64_t{1} << 30) + 1}, "option chunk_bytes");
  refused({.depth = 65}, "option depth is 65");
  refused({.keepers = 85}, "option keepers is 85");
  refused({.serves = 85}, "option serves is 85");
  refused({.phases = 3}, "option phases is 3; it has to be between 0 (untax chooses) and 2");
  refused({.phases = 2}, "option phases is 2; it has to be between 0 (untax chooses) and 1", false);
  refused({.how = pattern::producer_consumer}, "has no pattern producer_consumer");
  refused({.wire = wire_kind::bulk}, "goes by bulk between GPUs only");
  refused({.how = pattern::fused_specialized, .direct = true},
          "goes directly as fused_sequential only");
  for (const collective_options& most :
       {collective_options{.workers = 84}, collective_options{.chunk_bytes = std::int64_t{1} << 30},
        collective_options{.depth = 64}, collective_options{.serves = 84}})
    EXPECT_NO_THROW((void)plan_of(3, need_of(100, true), most));
  for (const std::int64_t count : {std::int64_t{-1}, std::int64_t{1} << 48}) {
    expect_error(error_of([&] { require_count("op", 1, "the count", count); }),
                 errc::invalid_argument, {"rank 1: op: the count is " + std::to_string(count)});
  }
  EXPECT_NO_THROW(require_count("op", 1, "the count", 0));
  EXPECT_NO_THROW(require_count("op", 1, "the count", (std::int64_t{1} << 48) - 1));
}

TEST(collective_plans, have_no_more_chunks_than_can_be_counted) {
  constexpr std::int64_t most = (std::int64_t{1} << 29) - 1;
  const auto cut = [](std::int64_t total) {
    return plan_of(1, need_of(total, false), {.chunk_bytes = 4}).chunk;
  };
  EXPECT_EQ(cut(most), 1);
  expect_error(error_of([&] { (void)cut(most + 1); }), errc::invalid_argument, {"into too many"});
}

TEST(collective_plans, list_keepers_of_the_own_shard) {
  collective_plan plan;
  plan.direct = true;
  EXPECT_EQ(way_of(plan), "direct, without rooms");
  plan.keepers = 1;
  EXPECT_EQ(way_of(plan), "direct, without rooms, 1 keepers");
}

TEST(collective_plans, give_their_need_of_heap) {
  constexpr std::size_t slack = std::size_t{1} << 16;
  collective_plan plan{.world = 3, .phases = 2, .workers = 5, .chunk = 100, .depth = 4};
  const std::size_t flags = std::size_t{2} * 5 * 3 * 8;
  EXPECT_EQ(heap_for(plan, dtype::f32), std::size_t{2} * 5 * 4 * 3 * (400 + 16) + flags + slack);
  EXPECT_EQ(heap_for(plan, dtype::bf16), std::size_t{2} * 5 * 4 * 3 * (200 + 16) + flags + slack);
  plan.direct = true;
  EXPECT_EQ(heap_for(plan, dtype::f32), flags + slack);
  plan.pushes = true;
  EXPECT_EQ(heap_for(plan, dtype::f32), std::size_t{5} * 4 * 3 * (400 + 16) + flags + slack);
  plan.direct = plan.pushes = false;
  plan.wire = wire_kind::packets;
  EXPECT_EQ(heap_for(plan, dtype::f32), (std::size_t{2} * 2 * 800 + 5 * 16) * 3 + slack);
  // Few elements: the words of a reduction that stand for nothing, one for each block, take more
  // than packets do.
  plan.chunk = 3;
  EXPECT_EQ(heap_for(plan, dtype::f32), (std::size_t{2} * 2 * (16 + 5 * 16) + 5 * 16) * 3 + slack);
}

TEST(collective_plans, have_heap_for_the_rooms_and_counters_of_their_protocols) {
  const auto expect = [](const auto& protocol, const collective_plan& plan) {
    const auto rooms = protocol.inbox().rows * protocol.inbox().cols * 4;
    const auto counters = std::int64_t{protocol.counters()} * 8;
    const auto heap = static_cast<std::int64_t>(heap_for(plan, dtype::f32));
    EXPECT_GE(heap, rooms + counters) << fields_of(plan);
    EXPECT_LE(heap, rooms + counters + 80 * kib) << fields_of(plan);
  };
  constexpr std::int64_t count = 1 << 18;
  for (const std::int64_t most : {std::int64_t{0}, count}) {
    for (const int world : {2, 8}) {
      collective_plan plan{
          .world = world, .workers = 12, .chunk = 1 << 10, .depth = 4, .most = most};
      for (const int phases : {1, 2}) {
        plan.phases = phases;
        expect(reduce_protocol(count, reduction::sum, reduce_target::everywhere, plan), plan);
      }
      plan.direct = plan.pushes = true;
      expect(pushed_reduce(count, reduction::sum, plan), plan);
      plan.pushes = false;
      expect(direct_reduce(count, reduction::sum, reduce_target::everywhere, plan), plan);
    }
  }
}

}  // namespace
}  // namespace untax
