#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

// What the tests of plans look at: the same in every run, and with every library. The environment
// variable UNTAX_PLAN_SEEDS names so many more seeds.
namespace plans_test {

/// Multiprocessors of the GPU that is planned for.
inline constexpr int num_sms = 132;

/// Patterns whose kernels are ours.
inline constexpr untax::pattern own_patterns[] = {
    untax::pattern::bulk_synchronous,       untax::pattern::producer_consumer,
    untax::pattern::fused_sequential,       untax::pattern::fused_specialized,
    untax::pattern::fused_warp_specialized, untax::pattern::copy_engine};

/// Numbers from a seed.
class numbers {
 public:
  explicit numbers(unsigned seed) : engine_(seed) {}
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  /// From 0 on.
  std::size_t below(std::size_t end) {
    return static_cast<std::size_t>((*this)(0, static_cast<std::int64_t>(end) - 1));
  }
  template <class T, std::size_t count>
  const T& one_of(const T (&all)[count]) {
    return all[(*this)(0, count - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

/// As many as a test takes, and as UNTAX_PLAN_SEEDS asks for beside.
[[nodiscard]] inline const std::vector<unsigned>& seeds() {
  static const std::vector<unsigned> all = [] {
    const char* more = std::getenv("UNTAX_PLAN_SEEDS");
    const auto count = 3U + (more == nullptr ? 0U : static_cast<unsigned>(std::atoi(more)));
    std::vector<unsigned> list;
    for (unsigned seed = 1; seed <= count; ++seed) list.push_back(seed);
    return list;
  }();
  return all;
}

/// A plan, and what it was made for.
template <class Problem, class Plan, class Protocol>
struct planned {
  Problem problem;
  untax::operator_options options;
  int num_sms = 0;
  Plan plan;
  Protocol how;
  std::string text;
};
using planned_gather =
    planned<untax::all_gather_gemm_problem, untax::gather_plan, untax::all_gather_gemm_protocol>;
using planned_scatter =
    planned<untax::gemm_all_scatter_problem, untax::scatter_plan, untax::gemm_all_scatter_protocol>;

/// What all ranks of a world do: their first choices; for one of them also all others.
template <class Planned>
struct world_case {
  std::vector<Planned> ranks;
  std::vector<Planned> others;
};
[[nodiscard]] const std::vector<world_case<planned_gather>>& gather_cases();
[[nodiscard]] const std::vector<world_case<planned_scatter>>& scatter_cases();

/// CTAs of kernels that run at the same time, and wait for each other or for other ranks, have
/// places, and somebody moves what has to move.
template <class Plan>
void expect_fits(const Plan& p, untax::pattern how, int workers, int places) {
  const bool beside = how == untax::pattern::producer_consumer;
  EXPECT_LE(p.comm_ctas + p.gemm.blocks() + (beside ? p.own_grid : 0), places);
  EXPECT_LE(p.own_grid, places);
  EXPECT_TRUE(workers == 0 || p.gemm.blocks() <= workers);
  EXPECT_EQ(p.comm_ctas % cluster_blocks(p.gemm.config), 0);
  EXPECT_GE(p.gemm.blocks(), 1);
  EXPECT_GE(p.protocol.senders, 1);
  EXPECT_EQ(p.comm_ctas > 0, how == untax::pattern::fused_specialized);
  EXPECT_TRUE(p.own_grid > 0 || !(beside || how == untax::pattern::bulk_synchronous));
  EXPECT_TRUE(std::isfinite(p.gemm.cycles) && p.gemm.cycles > 0);
}

/// Calls `look(planned)` for all of them.
template <class Case, class Look>
void each_plan(const std::vector<Case>& cases, const Look& look) {
  for (const Case& c : cases) {
    for (const auto& p : c.ranks) look(p);
    for (const auto& p : c.others) look(p);
  }
}

}  // namespace plans_test
