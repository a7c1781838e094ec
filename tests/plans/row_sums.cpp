// Sums of a GEMM over ranks that are sent as rows: parts of tiles end up once at each owner of
// their rows, the schedule of all ranks is right, and a plan with something exchanged or left out
// is found out.
#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "engines/gpu/gemm/kernels.hpp"
#include "ops/common/nowhere.hpp"
#include "ops/common/planning.hpp"
#include "ops/gemm_reduce_common/device_schedule.hpp"
#include "ops/plan_check/check.hpp"
#include "tests/errors.hpp"

namespace {

using namespace untax;
using untax_test::error_of;
using untax_test::expect_error;

/// GPUs of few multiprocessors have all that whole ones have, in few lanes.
constexpr int few = 14;
const operator_options as_rows{.how = pattern::fused_warp_specialized};

device_sum sum_of(std::int64_t m, std::int64_t n, std::int64_t k, reduce_target target,
                  int phases) {
  return {"a sum", m, n, k, dtype::bf16, dtype::bf16, target, phases};
}
std::string text_of(const device_sum& sum, int ranks) {
  return fmt::format("{} x {} x {} {}, {} phases, {} ranks", sum.m, sum.n, sum.k,
                     sum.target == reduce_target::owner ? "at owners" : "everywhere", sum.phases,
                     ranks);
}

TEST(row_sums, schedules_are_right) {
  constexpr std::int64_t rows[] = {1, 3, 48, 130, 300, 521, 700};
  int number = 0;
  for (const std::int64_t m : rows) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      for (const int phases : {0, 1, 2}) {
        ++number;
        const auto target = phases == 0 ? reduce_target::owner : reduce_target::everywhere;
        // Of few columns of A some ranks have none.
        const device_sum sum = sum_of(m, number % 3 == 0 ? 520 : 264, number % 5 == 0 ? 8 : 328,
                                      target, std::max(phases, 1));
        const device_findings findings = check_on_gpus(sum, ranks, as_rows, few);
        ASSERT_EQ(findings.refusal, "") << text_of(sum, ranks);
        ASSERT_TRUE(findings.faults.empty()) << text_of(sum, ranks) << ": " << findings.plan << "\n"
                                             << findings.faults.front();
        ASSERT_GT(findings.steps, 0U) << text_of(sum, ranks);
      }
    }
  }
}

/// Every plan that there is, not only the best one.
TEST(row_sums, parts_of_random_problems_end_up_once_at_their_owners) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int i = 0; i < 60; ++i) {
    constexpr std::int64_t most_rows[] = {16, 300, 5000};
    const auto ranks = static_cast<int>(between(1, 8));
    const device_sum sum =
        sum_of(between(1, most_rows[between(0, 2)]), 8 * between(1, 300), 8 * between(1, 300),
               static_cast<reduce_target>(between(0, 1)), static_cast<int>(between(1, 2)));
    for (int rank = 0; rank < ranks; ++rank) {
      for (const row_sums_plan& plan : row_sums_plans(sum, ranks, rank, as_rows, {132})) {
        const auto faults = row_sums_model(sum, plan).faults();
        ASSERT_TRUE(faults.empty())
            << fmt::format("seed {}, rank {}, {}: {}: {}", seed, rank, text_of(sum, ranks),
                           plan.text(), faults.front());
      }
    }
  }
}

/// A reference of its own: owners of each row of a part, one by one.
TEST(row_sums, parts_belong_to_the_owners_of_their_rows) {
  for (const int m : {1, 2, 7, 64, 100, 521}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (const int part : {8, 48, 56, 64}) {
        const gpu::owned_rows owned{m, (m + ranks - 1) / ranks, part};
        for (int begin = 0; begin < m + part; begin += part) {
          std::vector<int> owners;
          for (int row = begin; row < std::min(begin + part, m); ++row)
            if (owners.empty() || owners.back() != row / owned.owner_rows)
              owners.push_back(row / owned.owner_rows);
          const auto rows_owned = owned.of_part(begin);
          ASSERT_EQ(static_cast<std::size_t>(rows_owned.count), owners.size());
          if (owners.empty()) continue;
          ASSERT_EQ(rows_owned.first, owners.front());
          for (const int owner : owners) ASSERT_LE(owned.slab_begin(owner), begin);
        }
      }
    }
  }
}

/// Beside what the same tiles take elsewhere, stream-K in a ring of three stages takes a fiftieth
/// more; and the quickest plan is the first.
TEST(row_sums, stream_k_in_a_short_ring_counts_as_slower) {
  const gpu::gpu_model gpu{132};
  int slower = 0;
  for (const std::int64_t m : {300, 1024, 2545, 4096}) {
    for (const std::int64_t k : {1024, 3584, 8192}) {
      const auto plans =
          row_sums_plans(sum_of(m, 8192, k, reduce_target::owner, 1), 1, 0, as_rows, gpu);
      ASSERT_TRUE(
          std::ranges::is_sorted(plans, {}, [](const row_sums_plan& p) { return p.gemm.cycles; }));
      const auto elsewhere = plans_with_wide_tiles(gpu::scatter_kernels, {m, 8192, k, dtype::bf16},
                                                   {multiplying(as_rows, gpu.num_sms), gpu.costs},
                                                   gpu::registers_with_sums);
      ASSERT_EQ(plans.size(), elsewhere.size());
      for (const row_sums_plan& p : plans) {
        const auto same = std::ranges::find_if(elsewhere, [&](const gpu::gemm_plan& e) {
          return e.config == p.gemm.config &&
                 e.schedule.stream_k_tiles == p.gemm.schedule.stream_k_tiles &&
                 e.schedule.clusters == p.gemm.schedule.clusters;
        });
        ASSERT_NE(same, elsewhere.end()) << p.text();
        const bool counts = p.gemm.config.stages < 4 && p.gemm.schedule.stream_k_tiles > 0;
        ASSERT_NEAR(p.gemm.cycles / same->cycles, counts ? 1.02 : 1, 1e-9) << p.text();
        slower += counts ? 1 : 0;
      }
    }
  }
  EXPECT_GT(slower, 10);
}

TEST(row_sums, own_rows_are_multiplied_last) {
  for (const std::int64_t m : {521, 1024, 2545, 7198}) {
    for (const int ranks : {2, 3, 8}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const auto plans = row_sums_plans(sum_of(m, 8192, 8192, reduce_target::owner, 1), ranks,
                                          rank, as_rows, {132});
        const auto by_rows = std::ranges::find_if(
            plans, [](const row_sums_plan& p) { return !p.gemm.config.swap_ab; });
        ASSERT_NE(by_rows, plans.end());
        const int cluster_rows = by_rows->gemm.config.cluster * tile_rows(by_rows->gemm.config);
        const int first = by_rows->rotation.rotated(0);
        const int last = by_rows->rotation.rotated(by_rows->rotation.all - cluster_rows);
        const auto& owned = by_rows->owned;
        EXPECT_TRUE(first == 0 || first >= owned.end(rank)) << first;
        EXPECT_TRUE(!owned.owns_some(rank) ||
                    (last < owned.end(rank) && last + cluster_rows >= owned.end(rank)))
            << m << " rows, rank " << rank << " of " << ranks << ": " << last;
      }
    }
  }
}

TEST(row_sums, slabs_have_room_for_any_rows_of_a_capacity) {
  for (const int ranks : {1, 2, 3, 7}) {
    for (const std::int64_t most : {1, 130, 1000}) {
      const device_sum sum = sum_of(most, 264, 328, reduce_target::owner, 1);
      for (row_sums_plan plan : row_sums_plans(sum, ranks, 0, as_rows, {132})) {
        const std::int64_t slab = plan.slab_rows;
        for (std::int64_t m = 1; m <= most; m += 1 + most / 50) {
          plan.set_rows(m);
          ASSERT_EQ(plan.slab_rows, slab);
          for (int owner = 0; owner < ranks; ++owner)
            ASSERT_LE(plan.owned.end(owner) - plan.owned.slab_begin(owner), slab);
        }
      }
    }
  }
}

TEST(row_sums, blocks_that_multiply_add_whole_tiles) {
  const auto behind = [](std::int64_t m, int ranks, reduce_target target, int phases = 2) {
    return row_sums_plans(sum_of(m, 8192, 8192, target, phases), ranks, 0, as_rows, {132})
        .front()
        .adds_behind;
  };
  for (const reduce_target target : {reduce_target::owner, reduce_target::everywhere}) {
    for (const std::int64_t m : {1024, 2048, 4096, 8192, 16384}) {
      for (const int ranks : {1, 2, 4, 8}) {
        if (m / ranks < 512) continue;
        EXPECT_FALSE(behind(m, ranks, target)) << m << " rows, " << ranks << " ranks";
      }
    }
    EXPECT_TRUE(behind(2545, 2, target)) << "an owner's rows end within a tile";
    EXPECT_TRUE(behind(512, 2, target)) << "own tiles are multiplied together with others";
    EXPECT_TRUE(behind(64, 2, target)) << "weights are the M operand";
    EXPECT_FALSE(behind(64, 1, target)) << "a rank that is alone has no rows of others";
  }
  EXPECT_TRUE(behind(4096, 2, reduce_target::everywhere, 1)) << "all rows go to all";
}

TEST(row_sums, the_adding_warps_depend_on_the_rows_of_a_run) {
  auto plan =
      row_sums_plans(sum_of(4096, 8192, 8192, reduce_target::owner, 1), 2, 1, as_rows, {132})
          .front();
  plan.set_rows(4000);
  EXPECT_TRUE(plan.adds_behind);
  plan.set_rows(4096);
  EXPECT_FALSE(plan.adds_behind);
}

TEST(row_sums, all_multiprocessors_add_if_there_are_enough_rows) {
  const auto adding = [](std::int64_t m, reduce_target target, int phases) {
    return row_sums_plans(sum_of(m, 8192, 8192, target, phases), 2, 0, as_rows, {132})
        .front()
        .adding;
  };
  EXPECT_EQ(adding(1, reduce_target::owner, 1), 4) << "1024 words of 16 bytes, 256 a block";
  EXPECT_EQ(adding(16, reduce_target::owner, 1), 32) << "of 8 rows";
  EXPECT_EQ(adding(16, reduce_target::everywhere, 1), 64) << "of all rows";
  EXPECT_EQ(adding(16, reduce_target::everywhere, 2), 32);
  EXPECT_EQ(adding(1000, reduce_target::owner, 1), 264);
  EXPECT_EQ(adding(1000, reduce_target::everywhere, 1), 264);
}

/// The findings about the models of all ranks after `change`.
template <class Change>
device_findings changed(const device_sum& sum, int ranks, const Change& change) {
  device_findings findings;
  std::vector<row_sums_model> models;
  for (int rank = 0; rank < ranks; ++rank) {
    row_sums_model& m =
        models.emplace_back(sum, row_sums_plans(sum, ranks, rank, as_rows, {few}).front());
    change(m);
    for (const std::string& fault : m.faults()) findings.faults.push_back(fault);
  }
  if (findings.faults.empty()) plan_check::prove(models, findings);
  return findings;
}

TEST(row_sums, mutants_of_plans_are_caught) {
  const device_sum of_owners = sum_of(300, 264, 328, reduce_target::owner, 1);
  const device_sum passed_on = sum_of(300, 264, 328, reduce_target::everywhere, 2);
  const device_sum at_once = sum_of(300, 264, 328, reduce_target::everywhere, 1);
  // Of whole tiles, which blocks that multiply add.
  const device_sum whole = sum_of(1536, 520, 328, reduce_target::owner, 1);
  const device_sum whole_passed_on = sum_of(1536, 520, 328, reduce_target::everywhere, 2);
  for (const device_sum& sum : {whole, whole_passed_on})
    EXPECT_FALSE(row_sums_plans(sum, 3, 1, as_rows, {few}).front().adds_behind);
  for (const device_sum& sum : {of_owners, passed_on, at_once, whole, whole_passed_on}) {
    const auto none = changed(sum, 3, [](row_sums_model&) {});
    EXPECT_TRUE(none.faults.empty()) << none.faults.front();
    const auto killed = [&](const char* what, const auto& change) {
      EXPECT_FALSE(changed(sum, 3, change).faults.empty()) << text_of(sum, 3) << ": " << what;
    };
    using model = row_sums_model;
    killed("a row less", [](model& m) { --m.plan.owned.m; });
    killed("a row tile less", [](model& m) {
      --(m.plan.gemm.config.swap_ab ? m.plan.gemm.schedule.n_tiles : m.plan.gemm.schedule.m_tiles);
    });
    killed("a column tile less", [](model& m) {
      --(m.plan.gemm.config.swap_ab ? m.plan.gemm.schedule.m_tiles : m.plan.gemm.schedule.n_tiles);
    });
    killed("k-blocks less", [](model& m) { --m.plan.gemm.schedule.k_blocks; });
    killed("other parts", [](model& m) { m.plan.owned.part_rows /= 2; });
    killed("another rank", [](model& m) { m.plan.rank = (m.plan.rank + 1) % 3; });
    killed("a slab at another place", [](model& m) {
      m.slabs[1].data = static_cast<const std::byte*>(m.slabs[1].data) + m.slabs[1].stride * 2;
    });
    killed("a slab of another rank", [](model& m) { std::swap(m.slabs[1], m.slabs[2]); });
    killed("fewer rows of a slab", [](model& m) { m.slabs[2].rows -= 9; });
    killed("slabs farther apart", [](model& m) {
      if (m.plan.rank == 1) ++m.plan.slab_rows;
    });
    killed("rows begin elsewhere", [](model& m) { m.plan.rotation = {64, 1 << 20}; });
    if (sum.target == reduce_target::everywhere) {
      killed("sums stay with their owners, or go to all",
             [](model& m) { m.plan.passes_on = !m.plan.passes_on; });
    }
    if (sum.target == reduce_target::everywhere && sum.phases == 1) continue;
    if (sum.m == of_owners.m) {
      killed("blocks add in tiles that others own, too",
             [](model& m) { m.plan.adds_behind = false; });
    }
    killed("owners of a row less", [](model& m) { --m.plan.owned.owner_rows; });
    killed("owners of more rows, at one rank", [](model& m) {
      if (m.plan.rank == 1) m.plan.owned.owner_rows += 16;
    });
    killed("everybody adds everything", [](model& m) {
      m.plan.everywhere = true;
      m.plan.owned.owner_rows = 0;
    });
  }
}

/// A meeting of the ranks that is left out.
TEST(row_sums, every_signal_is_needed) {
  // Another kernel adds, and blocks that multiply do.
  for (const device_sum& sum : {sum_of(130, 72, 200, reduce_target::everywhere, 2),
                                sum_of(1024, 520, 328, reduce_target::everywhere, 2)}) {
    std::vector<row_sums_model> models;
    for (int rank = 0; rank < 2; ++rank)
      models.emplace_back(sum, row_sums_plans(sum, 2, rank, as_rows, {few}).front());
    EXPECT_EQ(models.front().plan.adds_behind, sum.m == 130);
    const auto problems = [&](const auto& keeps) {
      device_schedule lanes;
      std::vector<schedule::operand_extents> operands;
      for (const row_sums_model& m : models) {
        const auto whole = std::make_shared<schedule::lane_program>(m.lanes());
        schedule::lane_program some({m.plan.rank,
                                     2,
                                     m.exchange().counters(),
                                     {2 * m.plan.slab_rows, sum.n},
                                     {},
                                     plan_check::tile_extent(m.plan.gemm.config)});
        for (int flag = whole->counters(); flag > m.exchange().counters(); --flag)
          static_cast<void>(some.add_flag());
        for (int i = 0; i < whole->kernels(); ++i) {
          const kernel about = whole->kernel_at(i);
          some.begin_kernel(about.name, about.stage, whole->work_of(i));
          for (int worker = 0; worker < about.workers; ++worker)
            some.add([=](std::uint64_t epoch, const program::sink& emit) {
              whole->program(i, worker, epoch, [&](step s) {
                if (keeps(s)) emit(s);
              });
            });
        }
        lanes.push_back(std::move(some));
        operands.push_back(m.operands());
      }
      device_findings findings;
      add_report(findings, lanes, check_lanes(lanes, operands, 2));
      return findings.faults;
    };
    const auto between_ranks = [](const room& r) { return r.named() && r.producer != r.consumer; };
    EXPECT_TRUE(problems([](const step&) { return true; }).empty());
    const auto missing = [&](const char* what, const auto& is) {
      EXPECT_FALSE(problems([&](const step& s) { return !is(s); }).empty()) << what;
    };
    const gemm_reduce_protocol& exchange = models.front().exchange();
    const auto is = [&](const room& r, const room& same) {
      return between_ranks(r) && r.ready == same.ready;
    };
    missing("that parts have landed", [&](const step& s) {
      return is(s.acquire, exchange.slab(s.acquire.producer, s.acquire.consumer, 1));
    });
    missing("that sums have landed", [&](const step& s) {
      return is(s.acquire, exchange.landed(s.acquire.producer, s.acquire.consumer, 1));
    });
    missing("that slabs are open", [&](const step& s) { return between_ranks(s.retire); });
  }
}

/// What kernels signal, and wait for, is what their protocol says. Output 1 of a kernel is that
/// sums have landed, output 0 the rest.
TEST(row_sums, kernels_signal_as_their_protocol_says) {
  for (const int phases : {0, 1, 2}) {
    const auto target = phases == 0 ? reduce_target::owner : reduce_target::everywhere;
    const device_sum sum = sum_of(130, 72, 200, target, std::max(phases, 1));
    row_sums_model m(sum, row_sums_plans(sum, 3, 1, as_rows, {few}).front());
    EXPECT_EQ(plan_check::exchange_difference(m), "") << text_of(sum, 3);
    const gemm_reduce_protocol& exchange = m.exchange();
    for (const std::uint64_t epoch : {1U, 2U}) {
      const room parts = exchange.landing(2, 1, 0, epoch);
      const room same = exchange.slab(2, 1, epoch);
      EXPECT_EQ(std::tuple(parts.ready, parts.free, parts.use, parts.credit, parts.readers),
                std::tuple(same.ready, same.free, same.use, same.credit, same.readers));
      EXPECT_EQ(exchange.landing(2, 1, 1, epoch).ready, exchange.landed(2, 1, epoch).ready);
      EXPECT_EQ(exchange.landing(2, 1, 1, epoch).use, exchange.landed(2, 1, epoch).use);
    }
    m.plan.passes_on = !m.plan.passes_on;
    EXPECT_EQ(plan_check::exchange_difference(m),
              fmt::format("acquire of 1 from rank 0 to rank 1 in epoch 1: only in its {}",
                          phases == 2 ? "protocol" : "lanes"));
  }
}

TEST(row_sums, have_16_bit_partials_only) {
  device_sum sum = sum_of(300, 264, 328, reduce_target::owner, 1);
  sum.partials = dtype::f32;
  expect_error(error_of([&] { (void)row_sums_plans(sum, 2, 1, as_rows, {132}); }),
               errc::unsupported,
               {"rank 1: a sum", "fused_warp_specialized", "fp32", "fused_sequential"});
  operator_options options = as_rows;
  options.workers = 1;
  sum = sum_of(100, 264, 328, reduce_target::owner, 1);
  expect_error(error_of([&] { (void)row_sums_plans(sum, 2, 1, options, {132}); }),
               errc::unsupported, {"rank 1: a sum", "(option workers is 1)"});
}

TEST(row_sums, are_the_usual_pattern_for_many_rows) {
  using enum pattern;
  const auto usual = [](std::int64_t m, reduce_target target, int phases, int world = 2) {
    return usual_patterns_of(sum_of(m, 8192, 8192, target, phases), world).front();
  };
  EXPECT_EQ(usual(127, reduce_target::owner, 1), fused_sequential);
  EXPECT_EQ(usual(128, reduce_target::owner, 1), fused_warp_specialized);
  EXPECT_EQ(usual(127, reduce_target::owner, 1, 1), fused_sequential);
  EXPECT_EQ(usual(128, reduce_target::owner, 1, 1), fused_warp_specialized);
  EXPECT_EQ(usual(127, reduce_target::owner, 1, 4), fused_sequential);
  EXPECT_EQ(usual(128, reduce_target::owner, 1, 4), fused_warp_specialized);
  EXPECT_EQ(usual(255, reduce_target::owner, 1, 8), fused_sequential);
  EXPECT_EQ(usual(256, reduce_target::owner, 1, 8), fused_warp_specialized);
  EXPECT_EQ(usual(16384, reduce_target::owner, 1), fused_warp_specialized);
  EXPECT_EQ(usual(191, reduce_target::everywhere, 2), fused_sequential);
  EXPECT_EQ(usual(192, reduce_target::everywhere, 2), fused_warp_specialized);
  EXPECT_EQ(usual(127, reduce_target::everywhere, 2, 3), fused_sequential);
  EXPECT_EQ(usual(128, reduce_target::everywhere, 2, 3), fused_warp_specialized);
  EXPECT_EQ(usual(191, reduce_target::everywhere, 2, 6), fused_sequential);
  EXPECT_EQ(usual(192, reduce_target::everywhere, 2, 6), fused_warp_specialized);
  EXPECT_EQ(usual(256, reduce_target::everywhere, 1), fused_sequential);
  EXPECT_EQ(usual(4095, reduce_target::everywhere, 2), fused_warp_specialized);
  EXPECT_EQ(usual(4096, reduce_target::everywhere, 2), fused_warp_specialized);
  EXPECT_EQ(usual(4160, reduce_target::everywhere, 2), fused_sequential) << "no whole tiles";
  EXPECT_EQ(usual(4096, reduce_target::everywhere, 2, 3), fused_sequential) << "the same";
  device_sum sum = sum_of(1024, 8192, 8192, reduce_target::owner, 1);
  sum.partials = dtype::f32;
  EXPECT_EQ(usual_patterns_of(sum, 2), (std::vector{fused_sequential, fused_specialized}));
}

}  // namespace
