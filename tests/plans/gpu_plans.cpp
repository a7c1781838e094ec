// Plans for GPUs for any number of rows: what the kernels of a plan do in runs of
// different rows, one after the other, proved lane by lane.
#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/all_reduce_norm/device_schedule.hpp"
#include "ops/common/device_schedule.hpp"
#include "ops/gemm_all_scatter/device_schedule.hpp"
#include "ops/gemm_reduce_common/device_schedule.hpp"
#include "ops/merge_partial_attention/device_schedule.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::numbers;
using plans_test::own_patterns;

constexpr int num_sms = 8;

gather_plan plan_of(const all_gather_gemm_problem& p, int world, int rank,
                    const operator_options& options) {
  return gather_plans(p, world, rank, options, num_sms).front();
}
scatter_plan plan_of(const gemm_all_scatter_problem& p, int world, int rank,
                     const operator_options& options) {
  return scatter_plans(p, world, rank, options, {num_sms}).front();
}
sums_plan plan_of(const device_sum& sum, int world, int rank, const operator_options& options) {
  return sums_plans(sum, world, rank, options, {num_sms}).front();
}

/// The same, sent as rows.
struct row_sum : device_sum {};
row_sums_plan plan_of(const row_sum& sum, int world, int rank, const operator_options& options) {
  return row_sums_plans(sum, world, rank, options, {num_sms}).front();
}

/// all_reduce_norm, with the names of a GEMM.
struct norm_case {
  std::int64_t m = 0;  ///< tokens
  std::int64_t n = 0;  ///< hidden
  std::int64_t k = 0;  ///< nothing
  int phases = 1;
};
norm_plan plan_of(const norm_case& p, int world, int rank, const operator_options& /*options*/) {
  return norm_plan_of({.tokens = p.m, .hidden = p.n}, world, rank, p.phases, num_sms);
}
/// A run of fewer tokens.
struct norm_run : norm_model {
  norm_run(const norm_case& p, const norm_plan& planned) : norm_model(planned) {
    plan.how.tokens = static_cast<int>(p.m);
  }
};

/// merge_partial_attention, with the names of a GEMM.
struct merge_case {
  std::int64_t m = 0;  ///< tokens
  std::int64_t n = 0;  ///< heads
  std::int64_t k = 0;  ///< elements of a head
  merged_heads get = merged_heads::all;

  [[nodiscard]] merge_partial_attention_problem problem() const {
    return {.tokens = m, .heads = n, .head_dim = k, .get = get};
  }
};
merge_grid plan_of(const merge_case& p, int world, int rank, const operator_options& options) {
  return merge_grid_of(p.problem(), world, rank, options.workers, num_sms);
}
struct merge_run : merge_model {
  merge_run(const merge_case& p, const merge_grid& planned) : merge_model(planned) {
    plan.how.tokens = static_cast<int>(p.m);
  }
};

std::string text_of(const device_sum& s) {
  return fmt::format("sum, {} phases, {} partials", s.phases, name_of(s.partials));
}
std::string text_of(const norm_case& p) { return fmt::format("norm, {} phases", p.phases); }
std::string text_of(const merge_case& p) {
  return p.get == merged_heads::own ? "merge, own heads" : "merge, all heads";
}
std::string text_of(const all_gather_gemm_problem& p) {
  return fmt::format("gather {}", name_of(p.gather));
}
std::string text_of(const gemm_all_scatter_problem&) { return "scatter"; }

/// Runs of one plan: the same models at all ranks, one for each run.
template <class Problem, class Model>
struct runs_of {
  Problem problem;  ///< of the most rows
  std::vector<std::int64_t> rows;
  std::vector<std::deque<Model>> ranks;

  runs_of(const Problem& most, int world, const operator_options& asked,
          std::vector<std::int64_t> of_runs)
      : problem(most), rows(std::move(of_runs)) {
    operator_options options = asked;
    options.varying_rows = true;
    for (int rank = 0; rank < world; ++rank) {
      const auto plan = plan_of(problem, world, rank, options);
      auto& runs = ranks.emplace_back();
      for (const std::int64_t m : rows) {
        Problem now = problem;
        now.m = m;
        runs.emplace_back(now, plan);
      }
    }
  }
  [[nodiscard]] std::string text() const {
    std::string joined;
    for (const std::int64_t m : rows) joined += fmt::format(" {}", m);
    return fmt::format("up to {} x {} x {}, {}, {} ranks, runs of{} rows: {}", problem.m, problem.n,
                       problem.k, text_of(problem), ranks.size(), joined,
                       ranks.front().front().plan.text());
  }
  [[nodiscard]] std::vector<std::string> faults() const {
    std::vector<std::string> names;
    for (const auto& runs : ranks)
      for (const auto& run : runs)
        for (const std::string& fault : run.faults()) names.push_back(fault);
    return names;
  }
  /// The problems that the checker finds after `change(step, epoch)` of every step; a step is left
  /// out if `change` returns false.
  template <class Change>
  [[nodiscard]] std::vector<std::string> problems(const Change& change) const {
    device_schedule lanes;
    std::vector<schedule::rank_plan> plans;
    for (const auto& runs : ranks) {
      std::vector<schedule::lane_program> programs;
      std::vector<extent> results;
      schedule::operand_extents operands;
      for (const auto& run : runs) {
        programs.push_back(run.lanes());
        const auto now = run.operands();
        operands.a = {std::max(operands.a.rows, now.a.rows), now.a.cols};
        operands.b = now.b;
        operands.c = {std::max(operands.c.rows, now.c.rows), now.c.cols};
        results.push_back(now.c);
      }
      lanes.push_back(schedule::lane_program::in_turn(std::move(programs)));
      auto& plan = plans.emplace_back(program(lanes.back()), operands, rows.size(), results);
      for (const auto& stage : plan.stages()) {
        for (const auto who : stage) {
          for (std::uint64_t epoch = 1; epoch <= rows.size(); ++epoch)
            for (step& s : plan.steps(who, epoch)) change(s, epoch);
        }
      }
    }
    return check_lanes(plans,
                       [&](int rank, int flag) {
                         return lanes[static_cast<std::size_t>(rank)].orders(flag);
                       })
        .problems;
  }
  [[nodiscard]] std::vector<std::string> problems() const {
    return problems([](step&, std::uint64_t) {});
  }
};

using gather_runs = runs_of<all_gather_gemm_problem, plan_check::gather_model>;
using scatter_runs = runs_of<gemm_all_scatter_problem, plan_check::scatter_model>;
using sums_runs = runs_of<device_sum, sums_model>;
using row_sums_runs = runs_of<row_sum, row_sums_model>;
using norm_runs = runs_of<norm_case, norm_run>;
using merge_runs = runs_of<merge_case, merge_run>;

constexpr pattern sums_patterns[] = {pattern::producer_consumer, pattern::fused_sequential,
                                     pattern::fused_specialized};
constexpr pattern row_sums_patterns[] = {pattern::fused_warp_specialized};
constexpr pattern norm_patterns[] = {pattern::fused_sequential};

/// Runs of random rows, of a problem with some random n and k.
template <class Runs, class Problem>
Runs random_runs(numbers& number, pattern how, Problem problem) {
  static constexpr std::int64_t most_rows[] = {16, 64, 300};
  const auto world = static_cast<int>(number(1, 4));
  problem.m = number(1, number.one_of(most_rows));
  problem.n = 8 * number(1, 40);
  problem.k = 8 * number(1, 60);
  std::vector<std::int64_t> runs;
  for (int i = 0; i < 6; ++i)
    runs.push_back(
        number(1, number(0, 1) == 0 ? problem.m : std::min<std::int64_t>(world, problem.m)));
  operator_options options{.how = how};
  if (number(0, 2) == 0) options.senders = static_cast<int>(number(1, 4));
  return {problem, world, options, runs};
}

template <class Runs, class Problem, class Patterns>
void expect_right(unsigned first_seed, const Problem& problem, const Patterns& patterns) {
  for (unsigned seed = first_seed; seed < first_seed + 6; ++seed) {
    numbers number(seed);
    for (int round = 0; round < 8; ++round) {
      for (const pattern how : patterns) {
        const Runs runs = random_runs<Runs>(number, how, problem);
        SCOPED_TRACE(fmt::format("seed {}, round {}, {}", seed, round, runs.text()));
        const auto faults = runs.faults();
        ASSERT_TRUE(faults.empty()) << faults.front();
        const auto problems = runs.problems();
        ASSERT_TRUE(problems.empty()) << problems.front();
      }
    }
  }
}

TEST(gpu_plans, gathers_of_different_rows_follow_each_other) {
  for (const gather_axis gather : {gather_axis::rows, gather_axis::k})
    expect_right<gather_runs>(900, all_gather_gemm_problem{.gather = gather}, own_patterns);
}
TEST(gpu_plans, scatters_of_different_rows_follow_each_other) {
  expect_right<scatter_runs>(950, gemm_all_scatter_problem{}, own_patterns);
}
TEST(gpu_plans, sums_of_different_rows_follow_each_other) {
  for (const reduce_target target : {reduce_target::owner, reduce_target::everywhere}) {
    for (const int phases : {1, 2}) {
      device_sum sum{.operator_name = "sum", .target = target, .phases = phases};
      expect_right<sums_runs>(1000, sum, sums_patterns);
      sum.partials = sum.type;
      expect_right<row_sums_runs>(1025, row_sum{sum}, row_sums_patterns);
    }
  }
}
TEST(gpu_plans, norms_of_different_tokens_follow_each_other) {
  for (const int phases : {1, 2})
    expect_right<norm_runs>(1050, norm_case{.phases = phases}, norm_patterns);
}

TEST(gpu_plans, merges_of_different_tokens_follow_each_other) {
  for (unsigned seed = 1100; seed < 1140; ++seed) {
    numbers number(seed);
    merge_case most{.m = number(1, 9), .n = number(1, 9), .k = 8 * number(1, 40)};
    if (number(0, 1) == 0) most.get = merged_heads::own;
    std::vector<std::int64_t> tokens;
    for (int i = 0; i < 6; ++i) tokens.push_back(number(1, most.m));
    const operator_options options{.workers = static_cast<int>(number(0, 3))};
    const merge_runs runs(most, static_cast<int>(number(1, 5)), options, tokens);
    SCOPED_TRACE(fmt::format("seed {}, {}", seed, runs.text()));
    const auto faults = runs.faults();
    ASSERT_TRUE(faults.empty()) << faults.front();
    const auto problems = runs.problems();
    ASSERT_TRUE(problems.empty()) << problems.front();
  }
}

/// Rows that lie in several turns, and turns that have several rows; a rank gets no heads.
merge_runs uneven_merges(merged_heads get) {
  return {{.m = 5, .n = 4, .k = 8 * 23, .get = get}, 3, {}, {5, 1, 4, 2, 5, 3}};
}

TEST(gpu_plans, merges_with_a_step_left_out_are_caught) {
  for (const merged_heads get : {merged_heads::all, merged_heads::own}) {
    ASSERT_TRUE(uneven_merges(get).problems().empty());
    merge_runs unasked = uneven_merges(get);
    merge_runs early = uneven_merges(get);
    merge_runs laid_out_anew = uneven_merges(get);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      for (std::size_t run = 0; run < 6; ++run) {
        unasked.ranks[rank][run].reserves = false;
        early.ranks[rank][run].awaits_statistics = false;
        laid_out_anew.ranks[rank][run].plan.how.slab_rows = 4;
      }
    }
    // A rank without heads receives no signal, and would overtake the peers that it sends to.
    EXPECT_EQ(unasked.problems().empty(), get == merged_heads::all);
    EXPECT_FALSE(early.problems().empty());
    EXPECT_FALSE(laid_out_anew.faults().empty());
    const auto unsaid =
        uneven_merges(get).problems([](step& s, std::uint64_t) { s.retire = room{}; });
    EXPECT_FALSE(unsaid.empty());
    const auto unsent = uneven_merges(get).problems([](step& s, std::uint64_t epoch) {
      if (s.what == action::copy && s.cols == 1 && epoch == 4) s.what = action::none;
    });
    EXPECT_FALSE(unsent.empty()) << "statistics of another run";
  }
}

/// Few rows, then all, in tiles that begin elsewhere for each owner.
sums_runs shared_slabs() {
  return {{.operator_name = "sum", .m = 300, .n = 64, .k = 256},
          2,
          {.how = pattern::fused_sequential},
          {300, 20, 299, 130, 300, 1}};
}

TEST(gpu_plans, slabs_sized_by_the_rows_of_a_run_are_caught) {
  const sums_runs right = shared_slabs();
  ASSERT_TRUE(right.faults().empty()) << right.text();
  ASSERT_TRUE(right.problems().empty()) << right.text();
  sums_runs wrong = shared_slabs();
  for (auto& runs : wrong.ranks)
    for (sums_model& run : runs) run.plan.how.slab_tiles = 0;
  EXPECT_FALSE(wrong.problems().empty()) << "each run lays its slabs out for its own rows";
}

TEST(gpu_plans, tiles_by_the_rows_of_the_plan_are_caught) {
  sums_runs runs = shared_slabs();
  sums_model& second = runs.ranks[0][1];
  second.plan.how.first_row_tile = second.plan.how.row_tiles + 1;
  EXPECT_FALSE(second.faults().empty());
}

/// One rank has rows, then all, then one again.
gather_runs one_sided(pattern how) {
  return {{.m = 9, .n = 64, .k = 256, .gather = gather_axis::rows},
          3,
          {.how = how},
          {1, 9, 2, 1, 9, 3}};
}

/// Whether a rank has rows in a run of `one_sided`.
bool has_rows(const gather_runs& runs, int rank, std::uint64_t epoch) {
  return !runs.ranks[static_cast<std::size_t>(rank)][epoch - 1].how.shard(rank).empty();
}

TEST(gpu_plans, a_reader_that_retires_only_for_senders_is_caught) {
  for (const pattern how : {pattern::fused_sequential, pattern::producer_consumer}) {
    const gather_runs runs = one_sided(how);
    ASSERT_TRUE(runs.problems().empty()) << runs.text();
    // As a plan for these rows alone would have it: the next run waits for ever.
    const auto result = runs.problems([&](step& s, std::uint64_t epoch) {
      if (s.retire.named() && !has_rows(runs, s.retire.producer, epoch)) s.retire = room{};
    });
    EXPECT_FALSE(result.empty()) << runs.text();
  }
}

TEST(gpu_plans, a_sender_without_reserve_is_caught) {
  for (const pattern how : {pattern::fused_sequential, pattern::producer_consumer}) {
    const gather_runs runs = one_sided(how);
    const auto result = runs.problems([](step& s, std::uint64_t) { s.reserve = room{}; });
    EXPECT_FALSE(result.empty()) << runs.text();
  }
}

TEST(gpu_plans, counters_that_restart_are_caught) {
  const gather_runs runs = one_sided(pattern::producer_consumer);
  // As if each plan that a run changes to forgot what others had used.
  const auto result = runs.problems([](step& s, std::uint64_t epoch) {
    for (room step::*verb : {&step::reserve, &step::acquire, &step::publish, &step::retire})
      if ((s.*verb).named() && (s.*verb).producer != (s.*verb).consumer && epoch >= 5)
        (s.*verb).use = 1;
  });
  EXPECT_FALSE(result.empty()) << runs.text();
}

TEST(gpu_plans, kernel_arguments_are_checked) {
  gather_runs runs = one_sided(pattern::producer_consumer);
  ASSERT_TRUE(runs.faults().empty());
  plan_check::gather_model& second = runs.ranks[1][2];
  ++second.shard.listed_from;
  EXPECT_FALSE(second.faults().empty()) << "counters of another rank's chunks";
  --second.shard.listed_from;
  second.shard.rows = 3;
  EXPECT_FALSE(second.faults().empty()) << "rows that this run has not";
}

}  // namespace
