// Numbers of operators and worlds: all ranks of an operator have its number, all operators of a
// world have the world's, and two operators differ.
#include <cstdint>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "support.hpp"

namespace untax::testing {
namespace {

TEST(trace_identity, ranks_of_an_operator_have_its_number_and_no_other_has_it) {
  constexpr int ranks = 3;
  start_trace({.path = "", .events_per_worker = 1 << 10});
  world_options settings;
  settings.heap_bytes = heap_for(traced_problem, ranks) * 4;
  run_threads(
      ranks,
      [](world& w) {
        const operator_options options = traced_way(pattern::bulk_synchronous);
        workload one(w, operator_named("all_gather_gemm"), traced_problem, options, 1);
        workload other(w, operator_named("all_gather_gemm"), traced_problem, options, 1);
        one.run();
        other.run();
      },
      settings);
  const trace_record record = stop_trace();
  std::map<std::uint64_t, std::set<int>> ranks_of;
  std::set<std::uint64_t> worlds;
  for (const traced_operator& op : record.operators) {
    EXPECT_TRUE(ranks_of[op.id].insert(op.rank).second) << "rank " << op.rank << " comes twice";
    EXPECT_EQ(op.ranks, ranks);
    worlds.insert(op.world);
  }
  EXPECT_EQ(ranks_of.size(), 2U);
  for (const auto& [id, found] : ranks_of) {
    EXPECT_NE(id, 0U);
    EXPECT_EQ(found.size(), static_cast<std::size_t>(ranks));
  }
  EXPECT_EQ(worlds.size(), 1U);
  EXPECT_FALSE(worlds.contains(0));
}

}  // namespace
}  // namespace untax::testing
