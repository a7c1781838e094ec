#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

// The cases of the tests of plans: the same in every run, and with every library. The environment
// variable UNTAX_PLAN_SEEDS adds that many seeds.
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
  int count(std::int64_t least, std::int64_t most) {
    return static_cast<int>((*this)(least, most));
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
  static const std::vector<unsigned> numbers_of_runs = [] {
    const char* more = std::getenv("UNTAX_PLAN_SEEDS");
    const auto count = 3U + (more == nullptr ? 0U : static_cast<unsigned>(std::atoi(more)));
    std::vector<unsigned> list;
    for (unsigned seed = 1; seed <= count; ++seed) list.push_back(seed);
    return list;
  }();
  return numbers_of_runs;
}

/// Calls `look(number)` so many times for each seed, which is counted from `first` on.
template <class Look>
void each_round(int rounds, const Look& look, unsigned first = 0) {
  for (const unsigned seed : seeds()) {
    numbers number(first + seed);
    for (int round = 0; round < rounds; ++round) {
      SCOPED_TRACE(fmt::format("seed {}, round {}", seed, round));
      ASSERT_NO_FATAL_FAILURE(look(number));
    }
  }
}

/// Whether a problem is one of all_gather_gemm; else it is one of gemm_all_scatter.
template <class Problem>
inline constexpr bool gathers = std::is_same_v<Problem, untax::all_gather_gemm_problem>;

/// A planning request of a rank, for a GPU of `sms` multiprocessors.
template <class Problem>
struct asked {
  Problem problem;
  int world = 1;
  untax::operator_options options;
  int sms = num_sms;
  int rank = 0;

  /// The first choice first.
  [[nodiscard]] auto plans() const {
    if constexpr (gathers<Problem>) {
      return untax::gather_plans(problem, world, rank, options, sms);
    } else {
      return untax::scatter_plans(problem, world, rank, options, {sms});
    }
  }
  [[nodiscard]] std::string text() const {
    std::string name = "gemm_all_scatter";
    if constexpr (gathers<Problem>)
      name =
          fmt::format("all_gather_gemm by {}, {}", name_of(problem.gather), name_of(options.move));
    return fmt::format("{} {} x {} x {}, rank {} of {}, {}, {} senders, {} workers, {} SMs", name,
                       problem.m, problem.n, problem.k, rank, world, name_of(options.how),
                       options.senders, options.workers, sms);
  }
};
using asked_gather = asked<untax::all_gather_gemm_problem>;
using asked_scatter = asked<untax::gemm_all_scatter_problem>;

/// A plan, and what it was made for.
template <class Problem>
struct planned : asked<Problem> {
  std::conditional_t<gathers<Problem>, untax::gather_plan, untax::scatter_plan> plan;
  std::conditional_t<gathers<Problem>, untax::all_gather_gemm_protocol,
                     untax::gemm_all_scatter_protocol>
      how;
  std::size_t choice = 0;  ///< 0: the first one

  [[nodiscard]] std::string text() const { return asked<Problem>::text() + ": " + plan.text(); }
};
using planned_gather = planned<untax::all_gather_gemm_problem>;
using planned_scatter = planned<untax::gemm_all_scatter_problem>;

/// The plans of all ranks of many worlds: their first choices; for one rank also all others.
[[nodiscard]] const std::vector<planned_gather>& gather_cases();
[[nodiscard]] const std::vector<planned_scatter>& scatter_cases();

/// Calls `look(planned)` for all of them.
template <class Look>
void each_plan(const Look& look) {
  for (const planned_gather& p : gather_cases()) look(p);
  for (const planned_scatter& p : scatter_cases()) look(p);
}

/// CTAs of kernels that run at the same time, and wait for each other or for other ranks, fit on
/// the GPU, and there are senders if data has to move.
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

}  // namespace plans_test
