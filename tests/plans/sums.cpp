// Sums of a GEMM over ranks that have GPUs: what is planned sends and takes every fragment once,
// the schedule of all ranks is right, and a plan with something exchanged or left out is found out.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "engines/gpu/comm/sinks/sum_fragments.hpp"
#include "engines/gpu/gemm/kernels.hpp"
#include "ops/gemm_reduce_common/device_schedule.hpp"
#include "ops/plan_check/check.hpp"
#include "tests/errors.hpp"
#include "tests/wanted_lines.hpp"

namespace {

using namespace untax;
using untax_test::error_of;
using untax_test::expect_error;

/// GPUs of few multiprocessors have all that whole ones have, in few lanes.
constexpr int few = 14;
constexpr pattern own_patterns[] = {pattern::producer_consumer, pattern::fused_sequential,
                                    pattern::fused_specialized};

device_sum sum_of(std::int64_t m, std::int64_t n, std::int64_t k, reduce_target target,
                  int phases) {
  return {"a sum", m, n, k, dtype::bf16, dtype::f32, target, phases};
}
operator_options in(pattern how) {
  operator_options options;
  options.how = how;
  return options;
}

TEST(sums, schedules_are_right) {
  constexpr std::int64_t rows[] = {1, 16, 48, 130, 300, 700};
  int number = 0;
  for (const std::int64_t m : rows) {
    for (const pattern how : own_patterns) {
      for (int ranks = 1; ranks <= 5; ++ranks) {
        const std::int64_t n = ++number % 7 == 0 ? 8 : number % 3 == 0 ? 520 : 264;
        const std::int64_t k = number % 5 == 0 ? 8 : 328;
        const auto target = number % 2 == 0 ? reduce_target::owner : reduce_target::everywhere;
        const int phases = 1 + number / 2 % 2;
        const device_sum sum = sum_of(m, n, k, target, phases);
        const device_findings findings = check_on_gpus(sum, ranks, in(how), few);
        const std::string what = fmt::format("{} x {} x {}, {} ranks, {}, {} phases", m, n, k,
                                             ranks, name_of(how), phases);
        ASSERT_EQ(findings.refusal, "") << what;
        ASSERT_TRUE(findings.faults.empty()) << what << ": " << findings.plan << "\n"
                                             << findings.faults.front();
        ASSERT_GT(findings.steps, 0U) << what;
      }
    }
  }
}

TEST(sums, fragments_of_random_problems_are_sent_and_taken_once) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int i = 0; i < 60; ++i) {
    constexpr std::int64_t most_rows[] = {16, 130, 3000};
    const auto ranks = static_cast<int>(between(1, 8));
    const device_sum sum =
        sum_of(between(1, most_rows[between(0, 2)]), 8 * between(1, 300), 8 * between(1, 300),
               static_cast<reduce_target>(between(0, 1)), static_cast<int>(between(1, 2)));
    const pattern how = own_patterns[between(0, 2)];
    for (int rank = 0; rank < ranks; ++rank) {
      const auto faults =
          sums_model(sum, sums_plans(sum, ranks, rank, in(how), {132}).front()).faults();
      ASSERT_TRUE(faults.empty()) << fmt::format(
          "seed {}, case {}: {} x {} x {}, rank {} of {}: {}", seed, i, sum.m, sum.n, sum.k, rank,
          ranks, faults.front());
    }
  }
}

// Where sums are passed on, owners have whole tiles if that costs none of them more than a quarter.
TEST(sums, owners_that_pass_sums_on_have_whole_tiles) {
  for (const int ranks : {2, 3, 8}) {
    int before = 0;
    for (int m = 1; m <= 3000; m += 1 + m / 97) {
      const sums_plan plan = sums_plans(sum_of(m, 8192, 4096, reduce_target::everywhere, 2), ranks,
                                        0, in(pattern::fused_sequential), {132})
                                 .front();
      const gpu::sum_fragments& how = plan.how;
      const int share = (m + ranks - 1) / ranks;
      const auto what = fmt::format("{} rows, {} ranks: {}", m, ranks, how.full_rows());
      ASSERT_GE(how.full_rows(), share) << what;
      ASSERT_LE(4 * how.full_rows(), 5 * share) << what;
      if (how.swap_ab) continue;
      for (const int step : {2 * how.tile_m, how.tile_m, gpu::warpgroup_rows})
        if (4 * round_up(share, step) <= 5 * share) {
          ASSERT_EQ(how.full_rows() % step, 0) << what;
        }
      // Slabs for the most rows have room for those of any run.
      ASSERT_GE(how.full_rows(), before) << what;
      before = how.full_rows();
    }
  }
  const sums_plan owners = sums_plans(sum_of(1022, 8192, 4096, reduce_target::owner, 1), 2, 0,
                                      in(pattern::fused_sequential), {132})
                               .front();
  EXPECT_EQ(owners.how.full_rows(), 511) << "of a reduce-scatter it is said who has which rows";
}
TEST(sums, a_run_of_fewer_rows_divides_them_among_owners_anew) {
  sums_plan plan = sums_plans(sum_of(1024, 8192, 4096, reduce_target::everywhere, 2), 2, 0,
                              in(pattern::fused_sequential), {132})
                       .front();
  EXPECT_EQ(plan.how.full_rows(), 512);
  plan.set_rows(818);
  EXPECT_EQ(plan.how.full_rows(), 448);
  EXPECT_EQ(plan.how.end_row(1), 818);
}

/// The findings about the models of all ranks after `change`.
template <class Change>
device_findings changed(const device_sum& sum, int ranks, pattern how, const Change& change) {
  device_findings findings;
  std::vector<sums_model> models;
  for (int rank = 0; rank < ranks; ++rank) {
    sums_model& m = models.emplace_back(sum, sums_plans(sum, ranks, rank, in(how), {few}).front());
    change(m);
    for (const std::string& fault : m.faults()) findings.faults.push_back(fault);
  }
  if (findings.faults.empty()) plan_check::prove(models, findings);
  return findings;
}
/// The same where `change` changes the plan.
template <class Change>
device_findings mutant(const device_sum& sum, int ranks, pattern how, const Change& change) {
  return changed(sum, ranks, how, [&](sums_model& m) { change(m.plan); });
}

// A rank fills a slab again two epochs later. If the owner sends it something in each epoch, what
// came in the one between says that the slab is empty, and so does what it passes on. So only a
// rank that adds nothing, of a sum that stays with its owners, has to ask: between two ranks that
// is where there is one row.
TEST(sums, ranks_that_receive_from_owners_need_no_reserve) {
  constexpr std::int64_t rows[] = {1, 2, 3, 5, 48, 130};
  int needed = 0;
  for (const std::int64_t m : rows) {
    for (int ranks = 2; ranks <= 4; ++ranks) {
      for (const int phases : {0, 1, 2}) {
        const auto target = phases == 0 ? reduce_target::owner : reduce_target::everywhere;
        const device_sum sum = sum_of(m, 72, 200, target, phases);
        const bool right = changed(sum, ranks, pattern::fused_sequential, [](sums_model& model) {
                             model.reserves = false;
                           }).faults.empty();
        const bool all_add = (m + ranks - 1) / ranks * (ranks - 1) < m;
        EXPECT_EQ(right, all_add || phases > 0)
            << fmt::format("{} rows, {} ranks, {} phases", m, ranks, phases);
        needed += right ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(needed, 7);
}

/// What kernels signal, and wait for, is what their protocol says.
TEST(sums, kernels_signal_as_their_protocol_says) {
  for (const int phases : {0, 1, 2}) {
    const auto target = phases == 0 ? reduce_target::owner : reduce_target::everywhere;
    const device_sum sum = sum_of(130, 72, 200, target, std::max(phases, 1));
    for (const pattern how : own_patterns) {
      sums_model m(sum, sums_plans(sum, 3, 1, in(how), {few}).front());
      EXPECT_EQ(plan_check::exchange_difference(m), "") << name_of(how) << ", phases " << phases;
      m.reserves = false;
      EXPECT_EQ(
          plan_check::exchange_difference(m),
          phases > 0 ? "" : "reserve of 1 from rank 1 to rank 0 in epoch 3: only in its protocol");
      m.plan.how.everywhere = phases != 1;
      EXPECT_NE(plan_check::exchange_difference(m), "") << name_of(how) << ", phases " << phases;
    }
  }
}

TEST(sums, mutants_of_plans_are_caught) {
  const device_sum sum = sum_of(300, 264, 328, reduce_target::owner, 1);
  const auto killed = [&](const char* what, const auto& change) {
    EXPECT_FALSE(mutant(sum, 3, pattern::fused_specialized, change).faults.empty()) << what;
  };
  EXPECT_TRUE(mutant(sum, 3, pattern::fused_specialized, [](sums_plan&) {}).faults.empty());
  killed("tiles of one row less", [](sums_plan& p) { --p.how.tile_m; });
  killed("a row tile less", [](sums_plan& p) { --p.how.row_tiles; });
  killed("a column tile less", [](sums_plan& p) { --p.how.col_tiles; });
  killed("parts of a tile are left out", [](sums_plan& p) { --p.how.parts; });
  killed("one group instead of two", [](sums_plan& p) { p.how.groups = 1; });
  killed("A and B exchanged", [](sums_plan& p) { p.how.swap_ab = !p.how.swap_ab; });
  killed("a row less", [](sums_plan& p) { --p.how.m; });
  killed("owners of a row less", [](sums_plan& p) { --p.how.owner_rows; });
  killed("owners of more rows, at one rank", [](sums_plan& p) {
    if (p.how.own_rank == 1) p.how.owner_rows += 16;
  });
  killed("an owner less", [](sums_plan& p) {
    if (p.how.own_rank == 2) p.how.own_rank = 1;
  });
  killed("passed on, though only owners want it", [](sums_plan& p) { p.how.passes_on = true; });
}

/// Blocks that only add do not multiply, and without such blocks all multiply.
TEST(sums, blocks_that_add_are_not_among_those_that_multiply) {
  const device_sum sum = sum_of(8192, 4096, 328, reduce_target::owner, 1);
  for (const pattern how : own_patterns) {
    for (const int senders : {0, 3, 10}) {
      operator_options options = in(how);
      options.senders = senders;
      int most = 0;
      for (const sums_plan& plan : sums_plans(sum, 2, 1, options, {132})) {
        most = std::max(most, plan.gemm.blocks());
        EXPECT_EQ(plan.comm_ctas > 0, how == pattern::fused_specialized);
        EXPECT_EQ(plan.beside, how == pattern::producer_consumer);
        EXPECT_TRUE(senders == 0 || plan.own_grid == (senders == 3 ? 4 : 10));
        EXPECT_TRUE(plan.comm_ctas == 0 || plan.comm_ctas == plan.own_grid);
        EXPECT_LE(plan.gemm.blocks() + (how == pattern::fused_sequential ? 0 : plan.own_grid), 132);
      }
      EXPECT_TRUE(how != pattern::fused_sequential || most == 132) << most;
    }
  }
}

TEST(sums, owners_pass_all_reduce_sums_on_in_two_phases) {
  for (const auto target : {reduce_target::owner, reduce_target::everywhere}) {
    for (const int phases : {1, 2}) {
      for (const int world : {1, 2, 3}) {
        const device_sum sum = sum_of(300, 264, 328, target, phases);
        for (const sums_plan& plan :
             sums_plans(sum, world, 0, in(pattern::fused_sequential), {132}))
          EXPECT_EQ(plan.how.passes_on,
                    target == reduce_target::everywhere && phases == 2 && world > 1);
      }
    }
  }
}

/// Behind the pipeline lie zeros, for 16-bit partials of a warp, and a byte for each of its
/// sub-tiles; a whole tile has its place in front of that.
TEST(sums, kernels_have_shared_memory_for_their_sink) {
  for (const gpu::tile_config& c : gpu::sums_kernels) {
    const int strip = c.block_n / 8 * 256;
    const int pipeline =
        c.stages * (gpu::tile_rows(c) + c.block_n) * gpu::block_k * 2 * gpu::k_blocks_per_stage(c) +
        2 * c.epilogue_buffers * gpu::subtile_bytes(c);
    EXPECT_EQ(gpu::can_stage(c), !c.swap_ab) << c.block_n;
    EXPECT_TRUE(c.swap_ab || c.epilogue_buffers >= gpu::subtiles_of(c)) << c.block_n;
    EXPECT_LE(pipeline + 2 * 1024 + (c.swap_ab ? 0 : strip + 128), 227 * 1024) << c.block_n;
  }
}

TEST(sums, too_few_blocks_are_refused_with_a_sufficient_number) {
  // Tiles of more rows do without a cluster.
  const device_sum sum = sum_of(100, 264, 328, reduce_target::owner, 1);
  for (const pattern how : own_patterns) {
    operator_options options = in(how);
    options.workers = 1;
    expect_error(error_of([&] { (void)sums_plans(sum, 2, 1, options, {132}); }), errc::unsupported,
                 {"rank 1: a sum", "(option workers is 1); 2 would do"});
    expect_error(error_of([&] { (void)sums_plans(sum, 2, 0, in(how), {1}); }), errc::unsupported,
                 {"rank 0: a sum", "the 1 multiprocessors"});
    expect_error(error_of([&] { (void)sums_plans(sum, 2, 1, in(how), {1}); }), errc::unsupported,
                 {"rank 1: a sum", "the 1 multiprocessors"});
  }
}

TEST(sums, refuse_patterns_that_gpus_lack) {
  const device_sum sum = sum_of(300, 264, 328, reduce_target::owner, 1);
  for (const pattern how : {pattern::bulk_synchronous, pattern::copy_engine})
    expect_error(error_of([&] { (void)sums_plans(sum, 2, 1, in(how), {132}); }), errc::unsupported,
                 {"rank 1: a sum", std::string(name_of(how)), "fused_sequential"});
  const device_findings findings = check_on_gpus(sum, 2, in(pattern::copy_engine), 132);
  EXPECT_NE(findings.refusal.find("copy_engine"), std::string::npos);
}

/// Adds the text of each plan of a sum, and its order of rows; or the reason why there is none.
void add(std::vector<std::string>& names, const device_sum& sum, int world, int rank,
         const operator_options& options, int places) {
  std::string text;
  try {
    const auto plans = sums_plans(sum, world, rank, options, {places});
    const gpu::sum_fragments& how = plans.front().how;
    text = fmt::format("{}; {}; tiles {} x {}, raster of {}, from tile {}", plans.front().text(),
                       plans.front().agreed().front(), how.tile_m, how.tile_n, how.raster_rows,
                       how.first_row_tile);
    for (const sums_plan& p : plans)
      text += fmt::format(", {}/{}/{}", p.gemm.config.stages, p.gemm.config.epilogue_buffers,
                          p.how.raster_rows);
  } catch (const error& e) {
    text = e.what();
  }
  names.push_back(fmt::format(
      "sum of {} x {} x {} {}, {} phases, rank {} of {}, {}, {} workers, {} "
      "SMs: {}",
      sum.m, sum.n, sum.k, sum.target == reduce_target::owner ? "at owners" : "everywhere",
      sum.phases, rank, world, name_of(options.how), options.workers, places, text));
}
TEST(sums, plans_equal_the_recorded_ones) {
  using enum pattern;
  std::vector<std::string> names;
  for (const auto target : {reduce_target::owner, reduce_target::everywhere}) {
    for (const int phases : {1, 2, 3}) {
      const device_sum sum{.operator_name = "a sum",
                           .m = 2000,
                           .n = 1032,
                           .k = 2048,
                           .target = target,
                           .phases = phases};
      device_sum halves = sum;
      halves.m = 40;
      halves.partials = dtype::bf16;
      for (const pattern how : {producer_consumer, fused_sequential, fused_specialized}) {
        for (const int world : {1, 2, 3, 8})
          add(names, world == 3 ? halves : sum, world, world == 2 ? 0 : world - 1, {.how = how},
              132);
        if (phases == 3 || target == reduce_target::everywhere) continue;
        add(names, sum, 2, 0, {.how = how, .workers = 40, .senders = 3}, 132);
        for (const int places : {1, 2, 3, 4, 5, 14}) add(names, halves, 2, 1, {.how = how}, places);
      }
    }
  }
  untax_test::expect_wanted_lines("tests/plans/sums.txt", names);
}

}  // namespace
