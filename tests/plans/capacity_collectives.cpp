#include <fmt/format.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <untax/ops/collectives.hpp>
#include <untax/tile/shard.hpp>
#include <untax/world/launch.hpp>

#include "tests/errors.hpp"
#include "tests/plans/allocations.hpp"
#include "tests/plans/known_collectives.hpp"

namespace untax::testing {
namespace {

template <class Op>
class capacity_of_collectives : public ::testing::Test {};
using all_collectives =
    ::testing::Types<all_gather, reduce_scatter, all_reduce, all_to_all, broadcast>;
TYPED_TEST_SUITE(capacity_of_collectives, all_collectives);

/// All ranks run the same random counts one after the other.
template <class Op>
void check(std::int64_t capacity, int world, const collective_options& options,
           std::uint64_t seed) {
  SCOPED_TRACE(fmt::format(
      "{}, up to {}, {} ranks, {}, {} phases, {} workers, chunks of {} bytes, "
      "depth {}, {}, seed {}",
      known<Op>::name, capacity, world, name_of(options.how), options.phases, options.workers,
      options.chunk_bytes, options.depth, options.direct ? "direct" : "by rooms", seed));
  std::mutex mutex;
  std::barrier meeting(world);
  run_threads(world, [&](untax::world& w) {
    problem_of<Op> problem;
    problem.count = capacity;
    problem.type = dtype::f32;
    Op op(w, problem, options);
    const auto room = static_cast<std::size_t>(capacity * world + 1);
    const symmetric<float> in = w.allocate<float>(room, "in");
    const symmetric<float> out = w.allocate<float>(room, "out");
    std::mt19937_64 random(seed);
    int wrong = 0;
    meeting.arrive_and_wait();
    if (w.rank() == 0) count_allocations();
    meeting.arrive_and_wait();
    std::uint64_t allocated = 0;
    for (std::uint64_t run = 1; run <= 30; ++run) {
      const auto count =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(capacity + 1));
      if (run == 30 && w.rank() == 0) allocated = counted_allocations();
      const view mine{count, world, w.rank(), run};
      const std::int64_t given = known<Op>::in(mine);
      const std::int64_t wanted = known<Op>::out(mine);
      for (std::int64_t i = 0; i < given; ++i) in.local()[i] = number(run, w.rank(), i);
      op.run({in.local(), dtype::f32, given}, {out.local(), dtype::f32, wanted});
      for (std::int64_t i = 0; i < wanted; ++i) {
        if (out.local()[i] != known<Op>::result(mine, i)) ++wrong;
      }
    }
    meeting.arrive_and_wait();
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(wrong, 0) << "rank " << w.rank();
    // Directly, a run notes which memory it is on.
    if (!options.direct) {
      EXPECT_EQ(allocated, 0U);
    }
  });
}

TYPED_TEST(capacity_of_collectives, run_any_count) {
  std::mt19937_64 random(1);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (const pattern how : {pattern::bulk_synchronous, pattern::fused_sequential,
                            pattern::fused_specialized, pattern::automatic}) {
    for (int world = 1; world <= 4; ++world) {
      for (int i = 0; i < 6; ++i) {
        collective_options options;
        options.how = how;
        options.varying_count = true;
        const bool has_phases =
            std::is_same_v<TypeParam, all_reduce> || std::is_same_v<TypeParam, broadcast>;
        if (has_phases) options.phases = static_cast<int>(between(0, 2));
        options.workers = static_cast<int>(between(1, 2));
        options.chunk_bytes = between(0, 1) * between(4, 60);
        options.depth = static_cast<int>(between(0, 3));
        options.direct = how == pattern::fused_sequential && between(0, 1) == 1;
        check<TypeParam>(between(0, 100), world, options, random());
        if (this->HasFailure()) return;
      }
    }
  }
}

TEST(capacity, a_rank_with_another_count_is_named) {
  std::vector<std::string> texts(3);
  try {
    run_threads(3, [&](untax::world& w) {
      all_reduce op(w, {.count = 64, .type = dtype::f32}, {.varying_count = true});
      std::vector<float> values(64);
      const std::int64_t count = w.rank() == 2 ? 64 : 3;
      try {
        op.run({values.data(), dtype::f32, count}, {values.data(), dtype::f32, count});
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::disagreement);
        texts[static_cast<std::size_t>(w.rank())] = e.what();
        throw;
      }
    });
  } catch (const error&) {
    // Looked at by rank.
  }
  for (const std::string& text : texts)
    EXPECT_NE(text.find("64 at rank 2"), std::string::npos) << text;
}

TEST(capacity, other_counts_than_planned_are_refused) {
  run_threads(1, [](untax::world& w) {
    all_reduce op(w, {.count = 64, .type = dtype::f32}, {.varying_count = true});
    std::vector<float> values(65);
    for (const std::int64_t count : {-1, 65}) {
      const error e = untax_test::error_of([&] {
        op.run({values.data(), dtype::f32, count}, {values.data(), dtype::f32, count});
      });
      EXPECT_EQ(e.code(), errc::invalid_argument);
      EXPECT_NE(std::string(e.what()).find(fmt::format("out makes the count {}; ", count)),
                std::string::npos)
          << e.what();
    }
  });
}

TEST(capacity, unequal_parts_do_not_vary) {
  run_threads(1, [](untax::world& w) {
    const error e = untax_test::error_of([&] {
      const all_to_all op(w, {.count = 0, .type = dtype::f32, .counts = {3}},
                          {.varying_count = true});
    });
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("varying_count is for equal parts"), std::string::npos);
  });
}

}  // namespace
}  // namespace untax::testing
