// Collectives of any count as kernels run them: runs of different counts, one after the other, each
// by the protocol of its count with the rooms and counters of the plan, proved by the schedule
// checker.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "engines/schedule/check.hpp"
#include "ops/all_gather/protocol.hpp"
#include "ops/all_reduce/protocol.hpp"
#include "ops/all_to_all/protocol.hpp"
#include "ops/broadcast/protocol.hpp"
#include "ops/reduce_scatter/protocol.hpp"
#include "tests/plans/known_collectives.hpp"

namespace untax::testing {
namespace {

/// Epoch e is the run number e.
template <class Protocol>
struct runs_in_turn {
  std::vector<Protocol> runs;

  [[nodiscard]] int rank() const { return runs[0].rank(); }
  [[nodiscard]] int world() const { return runs[0].world(); }
  [[nodiscard]] int kernels() const { return runs[0].kernels(); }
  [[nodiscard]] kernel kernel_at(int i) const { return runs[0].kernel_at(i); }
  [[nodiscard]] int counters() const { return runs[0].counters(); }
  [[nodiscard]] extent inbox() const { return runs[0].inbox(); }
  [[nodiscard]] extent outbox() const { return runs[0].outbox(); }
  [[nodiscard]] extent tile_extent() const { return runs[0].tile_extent(); }
  template <class Emit>
  void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    runs[static_cast<std::size_t>(epoch - 1)].program(kernel_index, worker, epoch, emit);
  }
};

struct test_case {
  int world = 1;
  std::int64_t capacity = 1;
  std::vector<std::int64_t> counts;
  collective_options options;

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "up to {}, runs of {}, {} ranks, {}, {} phases, {} workers, {} bytes, depth "
        "{}, {}, {}",
        capacity, fmt::join(counts, " "), world, name_of(options.how), options.phases,
        options.workers, options.chunk_bytes, options.depth, options.direct ? "direct" : "by rooms",
        options.inputs == input_path::rooms ? "inputs through rooms" : "");
  }
};

/// The problems that the checker finds in the plans of all ranks, after `change(plan)` of each.
template <class Op, class Change>
std::vector<std::string> problems(const test_case& c, const Change& change) {
  std::vector<schedule::rank_plan> plans;
  problem_of<Op> problem;
  problem.type = dtype::f32;
  const auto with = [&](std::int64_t count) {
    problem_of<Op> p = problem;
    p.count = count;
    return p;
  };
  for (int rank = 0; rank < c.world; ++rank) {
    const collective_need need = need_of(with(c.capacity), c.world);
    collective_plan plan =
        plan_collective(c.world, rank, need, c.options, memory_kind::cuda, 1).plan;
    change(plan);
    schedule::operand_extents operands{.a = {1, 0}, .b = {}, .c = {1, 0}};
    std::vector<extent> results;
    for (const std::int64_t count : c.counts) {
      const view v{count, c.world, rank};
      operands.a.cols = std::max(operands.a.cols, known<Op>::in(v));
      operands.c.cols = std::max(operands.c.cols, known<Op>::out(v));
      results.push_back({1, known<Op>::out(v)});
    }
    with_protocol_for(with(c.capacity), plan, [&](auto most) {
      using protocol_type = decltype(most);
      runs_in_turn<protocol_type> turns;
      for (const std::int64_t count : c.counts) {
        with_protocol_for(with(count), plan, [&](auto protocol) {
          if constexpr (std::is_same_v<decltype(protocol), protocol_type>)
            turns.runs.push_back(protocol);
        });
      }
      EXPECT_EQ(turns.runs.size(), c.counts.size());
      plans.emplace_back(program(turns), operands, c.counts.size(), results);
    });
  }
  return schedule::check_schedule(plans).problems;
}
template <class Op>
std::vector<std::string> problems(const test_case& c) {
  return problems<Op>(c, [](collective_plan&) {});
}

template <class Op>
class kernels_of_collectives : public ::testing::Test {};
using all_collectives =
    ::testing::Types<all_gather, reduce_scatter, all_reduce, all_to_all, broadcast>;
TYPED_TEST_SUITE(kernels_of_collectives, all_collectives);

template <class Op>
test_case random_case(std::mt19937_64& random) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  constexpr pattern patterns[] = {pattern::bulk_synchronous, pattern::fused_sequential,
                                  pattern::fused_specialized};
  test_case c;
  c.world = static_cast<int>(between(2, 4));
  c.capacity = between(1, 90);
  for (int i = 0; i < 6; ++i) c.counts.push_back(between(1, between(0, 1) == 0 ? 4 : c.capacity));
  for (std::int64_t& count : c.counts) count = std::min(count, c.capacity);
  collective_options& o = c.options;
  o.varying_count = true;
  o.wire = wire_kind::stores;
  o.how = patterns[between(0, 2)];
  o.workers = static_cast<int>(between(1, 3));
  o.chunk_bytes = between(1, 5) * 16;
  o.depth = static_cast<int>(between(1, 4));
  constexpr bool reduces_everywhere = std::is_same_v<Op, all_reduce>;
  if (reduces_everywhere || std::is_same_v<Op, broadcast>)
    o.phases = static_cast<int>(between(1, 2));
  o.direct = o.how == pattern::fused_sequential && between(0, 1) == 0;
  if (reduces_everywhere && o.direct && o.phases == 2 && between(0, 1) == 0)
    o.inputs = input_path::rooms;
  return c;
}

TYPED_TEST(kernels_of_collectives, run_any_count_one_after_the_other) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    std::mt19937_64 random(seed);
    const test_case c = random_case<TypeParam>(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.text()));
    const auto result = problems<TypeParam>(c);
    ASSERT_TRUE(result.empty()) << result.front();
  }
}

/// Of an all_reduce through few rooms.
test_case few_rooms() {
  test_case c{.world = 3, .capacity = 60, .counts = {60, 5, 60, 1, 30, 60}};
  c.options = {.how = pattern::fused_sequential,
               .phases = 2,
               .wire = wire_kind::stores,
               .workers = 1,
               .varying_count = true,
               .chunk_bytes = 16,
               .depth = 2};
  return c;
}

TEST(kernels_of_collectives, that_ignore_the_capacity_are_caught) {
  ASSERT_TRUE(problems<all_reduce>(few_rooms()).empty());
  // As a plan for one count has it: chunks are numbered by those of each run.
  EXPECT_FALSE(problems<all_reduce>(few_rooms(), [](collective_plan& p) { p.most = 0; }).empty());
  // Runs may use a room more often than is thought.
  EXPECT_FALSE(problems<all_reduce>(few_rooms(), [](collective_plan& p) { p.most = 4; }).empty());
}

}  // namespace
}  // namespace untax::testing
