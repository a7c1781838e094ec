// How collectives go between GPUs: boundaries between ways, and how many blocks each takes.
#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include <untax/ops/collective_problems.hpp>

#include "engines/gpu/packets/layout.hpp"
#include "ops/collectives_common/planning.hpp"

namespace untax {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

/// fp32, by the bytes of the part that a rank sends another: in one phase `one_phase`, in two
/// `two`.
collective_need need_of(std::int64_t two, std::int64_t one_phase, bool phases, touched memory) {
  return {.name = "op",
          .type = dtype::f32,
          .largest = two / 4,
          .largest_one = one_phase / 4,
          .total = one_phase / 4,
          .can_have_two_phases = phases,
          .packet_phases = phases ? 2 : 1,
          .by_peers = memory};
}
collective_need gather(std::int64_t bytes) { return need_of(bytes, bytes, false, touched::result); }
collective_need scatter(std::int64_t bytes) { return need_of(bytes, bytes, false, touched::input); }
collective_need reduce(std::int64_t bytes, int world) {
  return need_of(bytes / world, bytes, true, touched::both);
}
collective_need broadcast(std::int64_t bytes, int world) {
  return need_of(bytes / world, bytes, true, touched::result);
}

collective_plan plan_of(int world, const collective_need& need,
                        const collective_options& options = {}, int sharing = 1) {
  return plan_collective(world, 0, need, options, memory_kind::cuda, sharing).plan;
}

TEST(collectives_of_gpus, go_by_packets_while_they_are_short) {
  const auto wire = [](int world, const collective_need& need,
                       const collective_options& options = {}) {
    return plan_of(world, need, options).wire;
  };
  EXPECT_EQ(wire(4, gather(mib)), wire_kind::packets);
  EXPECT_EQ(wire(4, gather(mib + 4)), wire_kind::stores);
  EXPECT_EQ(wire(2, gather(3 * mib)), wire_kind::packets);
  EXPECT_EQ(wire(2, gather(3 * mib + 4)), wire_kind::stores);
  EXPECT_EQ(wire(2, gather(1792 * kib), {.direct = true}), wire_kind::packets);
  EXPECT_EQ(wire(2, gather(1792 * kib + 4), {.direct = true}), wire_kind::stores);
  EXPECT_EQ(wire(1, gather(4)), wire_kind::stores) << "there is nothing to send";
  EXPECT_EQ(wire(4, gather(4), {.how = pattern::fused_specialized}), wire_kind::stores);
  EXPECT_EQ(wire(4, gather(4), {.wire = wire_kind::bulk}), wire_kind::bulk);
  // Words, of which nothing is flag; two phases are twice the bytes.
  for (const bool direct : {false, true}) {
    EXPECT_EQ(wire(2, reduce(24 * mib, 2), {.direct = direct}), wire_kind::packets);
    EXPECT_EQ(wire(2, reduce(24 * mib + 16, 2), {.direct = direct}), wire_kind::stores);
    EXPECT_EQ(wire(4, reduce(16 * mib, 4), {.direct = direct}), wire_kind::packets);
    EXPECT_EQ(wire(4, reduce(16 * mib + 16, 4), {.direct = direct}), wire_kind::stores);
    EXPECT_EQ(wire(4, scatter(8 * mib), {.direct = direct}), wire_kind::packets);
    EXPECT_EQ(wire(4, scatter(8 * mib + 4), {.direct = direct}), wire_kind::stores);
  }
  EXPECT_EQ(wire(4, broadcast(6 * mib, 4)), wire_kind::packets);
  EXPECT_EQ(wire(4, broadcast(6 * mib + 16, 4)), wire_kind::stores);
}

TEST(collectives_of_gpus, have_the_workers_of_the_option) {
  for (const int workers : {1, 3, 200}) {
    for (const std::int64_t bytes : {kib, 64 * mib}) {
      for (const pattern how : {pattern::automatic, pattern::fused_specialized})
        EXPECT_EQ(plan_of(4, gather(bytes), {.how = how, .workers = workers}).workers, workers);
      EXPECT_EQ(plan_of(4, reduce(bytes, 4), {.workers = workers, .direct = true}).workers,
                workers);
    }
  }
}

TEST(collectives_of_gpus, take_two_phases_if_one_sends_too_much) {
  const auto phases = [](int world, const collective_need& need,
                         const collective_options& options = {}) {
    return plan_of(world, need, options).phases;
  };
  EXPECT_EQ(phases(4, reduce(128 * kib, 4)), 1);
  EXPECT_EQ(phases(4, reduce(128 * kib + 16, 4)), 2);
  EXPECT_EQ(phases(2, reduce(100 * mib, 2)), 1);
  EXPECT_EQ(phases(4, gather(100 * mib)), 1);
  EXPECT_EQ(phases(4, reduce(mib, 4), {.phases = 1}), 1);
  EXPECT_EQ(phases(2, reduce(100 * mib, 2), {.direct = true}), 2)
      << "inputs are read until the end";
  EXPECT_EQ(phases(1, reduce(100 * mib, 1), {.direct = true}), 1);
  collective_need one_phase_of_packets = reduce(mib, 4);
  one_phase_of_packets.packet_phases = 1;
  EXPECT_EQ(phases(4, one_phase_of_packets, {.wire = wire_kind::packets}), 1);
  EXPECT_EQ(phases(4, one_phase_of_packets), 2);
}

TEST(collectives_of_gpus, have_receiving_blocks_if_all_data_goes_through_rooms) {
  const auto how = [](int world, const collective_need& need,
                      const collective_options& options = {}) {
    return plan_of(world, need, options).how;
  };
  EXPECT_EQ(how(4, gather(8 * mib)), pattern::fused_specialized);
  EXPECT_EQ(how(4, gather(kib)), pattern::fused_sequential) << "packets";
  EXPECT_EQ(how(1, gather(8 * mib)), pattern::fused_sequential);
  EXPECT_EQ(how(4, gather(8 * mib), {.direct = true}), pattern::fused_sequential);
  EXPECT_EQ(how(4, scatter(16 * mib), {.direct = true}), pattern::fused_sequential);
  EXPECT_EQ(how(4, scatter(16 * mib), {.direct = true, .inputs = input_path::rooms}),
            pattern::fused_specialized);
  EXPECT_EQ(how(4, reduce(64 * mib, 4)), pattern::fused_specialized);
  EXPECT_EQ(how(2, reduce(64 * mib, 2)), pattern::fused_sequential) << "one phase may be in place";
  EXPECT_EQ(how(4, gather(8 * mib), {.wire = wire_kind::bulk}), pattern::fused_sequential);
}

TEST(collectives_of_gpus, send_inputs_of_large_reductions) {
  const auto pushes = [](int world, std::int64_t bytes) {
    return plan_of(world, reduce(bytes, world), {.direct = true}).pushes;
  };
  EXPECT_FALSE(pushes(2, 80 * mib));
  EXPECT_TRUE(pushes(2, 80 * mib + 8));
  EXPECT_FALSE(
      plan_of(2, reduce(800 * mib, 2), {.direct = true, .inputs = input_path::in_place}).pushes);
  EXPECT_FALSE(plan_of(4, gather(800 * mib), {.direct = true}).pushes);
}

TEST(collectives_of_gpus, take_more_blocks_for_more_bytes) {
  const auto blocks = [](const collective_need& need, const collective_options& options,
                         int sharing = 1) { return plan_of(4, need, options, sharing).workers; };
  const collective_options stores{.how = pattern::fused_sequential, .wire = wire_kind::stores};
  for (const int sharing : {1, 2, 4, 8}) {
    const int most = 128 / sharing;
    for (const std::int64_t bytes :
         {std::int64_t{4}, 4 * kib, 4 * kib + 4, 40 * kib, 512 * kib, 512 * kib + 4, 80 * mib}) {
      const auto wanted =
          static_cast<int>(std::min<std::int64_t>((bytes + 4 * kib - 1) / (4 * kib), most));
      EXPECT_EQ(blocks(gather(bytes), stores, sharing), wanted) << bytes;
      EXPECT_EQ(blocks(gather(bytes), {.wire = wire_kind::bulk}, sharing),
                std::min(wanted, most / 2));
      // Of those that read from peers, as many do as of those that only send.
      EXPECT_EQ(
          blocks(scatter(bytes),
                 {.how = pattern::fused_sequential, .wire = wire_kind::stores, .direct = true},
                 sharing),
          std::min(wanted, most / 2));
    }
    EXPECT_EQ(blocks(gather(80 * mib), {}, sharing), most / 2) << "one takes where one sends";
    EXPECT_EQ(blocks(gather(80 * mib), {.serves = 3}, sharing), 3 * most / 4);
    EXPECT_EQ(blocks(reduce(80 * mib, 4), {}, sharing), most / 3) << "two take";
    const collective_options packets{.wire = wire_kind::packets};
    for (const std::int64_t bytes : {std::int64_t{4}, std::int64_t{256}, std::int64_t{260}, 2 * kib,
                                     3 * kib, 100 * kib, 40 * mib}) {
      const std::int64_t few = std::min<std::int64_t>((bytes + 255) / 256, 8);
      const std::int64_t each = std::int64_t{8} * gpu::packet_threads;
      const std::int64_t full = std::min<std::int64_t>((bytes + each - 1) / each, most);
      EXPECT_EQ(blocks(gather(bytes), packets, sharing), static_cast<int>(std::max(few, full)))
          << bytes;
      const std::int64_t words = std::int64_t{16} * gpu::reduction_threads;
      const std::int64_t combined = std::min<std::int64_t>((bytes + words - 1) / words, most);
      EXPECT_EQ(blocks(scatter(bytes), packets, sharing), static_cast<int>(std::max(few, combined)))
          << bytes;
    }
  }
}

TEST(collectives_of_gpus, without_elements_take_a_block) {
  for (const bool direct : {false, true}) {
    for (const collective_need& need : {gather(0), scatter(0), reduce(0, 4), broadcast(0, 4)})
      EXPECT_GE(plan_of(4, need, {.wire = wire_kind::stores, .direct = direct}).workers, 1);
  }
}

TEST(collectives_of_gpus, have_keepers_for_the_own_shard) {
  const auto plan = [](const collective_need& need, int sharing = 1) {
    return plan_of(4, need, {.direct = true}, sharing);
  };
  EXPECT_EQ(plan(gather(8 * mib)).keepers, 16);
  EXPECT_EQ(plan(gather(8 * mib)).workers, 112);
  EXPECT_EQ(plan(gather(8 * mib - 4)).keepers, 0);
  EXPECT_EQ(plan(gather(8 * mib - 4)).workers, 128);
  EXPECT_EQ(plan(broadcast(32 * mib, 4)).keepers, 32);
  EXPECT_EQ(plan(broadcast(32 * mib, 4)).workers, 96);
  EXPECT_EQ(plan(scatter(80 * mib)).keepers, 0);
  for (const int sharing : {2, 4, 8}) {
    EXPECT_EQ(plan(gather(8 * mib), sharing).keepers, 16 / sharing);
    EXPECT_EQ(plan(gather(8 * mib), sharing).workers, 112 / sharing);
  }
  EXPECT_EQ(plan_of(4, gather(8 * mib), {.keepers = 3, .direct = true}).workers, 125);
}

TEST(collectives_of_gpus, cut_data_through_rooms_evenly) {
  const auto chunk = [](std::int64_t part, int workers, const collective_options& asked = {}) {
    collective_options options = asked;
    options.how = pattern::fused_sequential;
    options.wire = wire_kind::stores;
    options.workers = workers;
    return plan_of(4, gather(part), options).chunk * 4;
  };
  EXPECT_EQ(chunk(4 * kib, 1), 4 * kib);
  EXPECT_EQ(chunk(60 * kib, 1), 60 * kib);
  EXPECT_EQ(chunk(61 * kib, 1), 30 * kib + 512) << "two of the same size, in steps of 512 bytes";
  EXPECT_EQ(chunk(960 * kib, 1), 60 * kib);
  EXPECT_EQ(chunk(1920 * kib, 1), 120 * kib) << "16 chunks are enough";
  EXPECT_EQ(chunk(19200 * kib, 1), 120 * kib);
  EXPECT_EQ(chunk(19200 * kib, 20), 60 * kib);
  EXPECT_EQ(plan_of(4, gather(8 * mib), {.wire = wire_kind::stores}).depth, 4);
  EXPECT_EQ(plan_of(4, gather(8 * mib), {.wire = wire_kind::stores, .depth = 7}).depth % 2, 0);
}

TEST(collectives_of_gpus, have_packets_for_all_elements_in_two_sets) {
  for (const std::int64_t bytes : {std::int64_t{4}, kib, 100 * kib}) {
    const collective_plan plan = plan_of(4, gather(bytes), {.wire = wire_kind::packets});
    EXPECT_EQ(plan.chunk, bytes / 4);
    EXPECT_EQ(plan.depth, 2);
  }
  EXPECT_EQ(plan_of(4, gather(0), {.wire = wire_kind::packets}).chunk, 1);
}

TEST(collectives_of_gpus, have_rooms_that_begin_where_vectors_do) {
  const auto chunk = [](std::int64_t part, std::int64_t asked) {
    return plan_of(4, gather(part), {.wire = wire_kind::stores, .workers = 1, .chunk_bytes = asked})
        .chunk;
  };
  EXPECT_EQ(chunk(4 * kib, 32), 8);
  EXPECT_EQ(chunk(20, 32), 8) << "a part of 5 elements has a room of 8";
  EXPECT_EQ(chunk(4 * kib, 20), 5) << "as asked";
  EXPECT_EQ(chunk(12, 20), 3);
}

TEST(collectives_of_gpus, follow_their_options) {
  const collective_need needs[] = {gather(16 * mib), scatter(16 * mib), reduce(64 * mib, 4),
                                   broadcast(64 * mib, 4)};
  for (const collective_need& need : needs) {
    for (const bool direct : {false, true}) {
      const auto with = [&](auto collective_options::*what, auto value) {
        collective_options options{
            .how = pattern::fused_sequential, .wire = wire_kind::stores, .direct = direct};
        options.*what = value;
        return plan_of(4, need, options);
      };
      for (const int count : {1, 2, 3, 50})
        EXPECT_EQ(with(&collective_options::workers, count).workers, count);
      for (const int depth : {2, 4, 6}) {  // of 8 chunks
        const collective_plan plan = with(&collective_options::depth, depth);
        EXPECT_TRUE(plan.direct || plan.depth == depth) << plan.depth;
      }
      for (const std::int64_t bytes : {512, 4096, 1 << 20}) {
        const collective_plan plan = with(&collective_options::chunk_bytes, bytes);
        EXPECT_TRUE(plan.direct || plan.chunk == bytes / 4) << plan.chunk;
      }
    }
  }
  for (const int count : {1, 2, 3, 50}) {
    const collective_options packets{.wire = wire_kind::packets, .workers = count};
    EXPECT_EQ(plan_of(4, gather(kib), packets).workers, count);
  }
  for (const int keepers : {1, 2, 5, 40}) {
    const collective_options asked{.keepers = keepers, .direct = true};
    EXPECT_EQ(plan_of(4, gather(80 * mib), asked).keepers, keepers);
    EXPECT_EQ(plan_of(4, broadcast(80 * mib, 4), asked).keepers, keepers);
  }
  for (const int serves : {1, 2, 5})
    EXPECT_EQ(plan_of(4, gather(80 * mib), {.serves = serves}).serves, serves);
  // Packets take two phases where these exist, unless one was asked for.
  EXPECT_EQ(plan_of(4, reduce(mib, 4), {.wire = wire_kind::packets}).phases, 2);
  EXPECT_EQ(plan_of(4, reduce(mib, 4), {.phases = 1, .wire = wire_kind::packets}).phases, 1);
  EXPECT_EQ(plan_of(4, reduce(kib, 4), {.phases = 2}).phases, 2);
}

/// However few blocks a rank has for itself, it has one.
TEST(collectives_of_gpus, have_a_block_on_the_smallest_part_of_a_gpu) {
  for (const int sharing : {16, 32, 100, 128, 300}) {
    for (const pattern how : {pattern::fused_sequential, pattern::fused_specialized}) {
      for (const bool direct : {false, true}) {
        if (direct && how == pattern::fused_specialized) continue;  // which is refused
        const collective_options options{.how = how, .wire = wire_kind::stores, .direct = direct};
        EXPECT_GE(plan_of(4, gather(80 * mib), options, sharing).workers, 1);
        EXPECT_GE(plan_of(4, reduce(80 * mib, 4), options, sharing).workers, 1);
        if (how == pattern::fused_specialized || sharing > 64) {
          EXPECT_LE(plan_of(4, gather(80 * mib), options, sharing).workers,
                    std::max(128 / sharing / 2, 1));
        }
        EXPECT_GE(plan_of(4, gather(4), {.wire = wire_kind::packets}, sharing).workers, 1);
      }
    }
    EXPECT_EQ(plan_of(4, gather(80 * mib), {.direct = true}, sharing).keepers,
              std::max(16 / sharing, 1));
  }
}

}  // namespace
}  // namespace untax
