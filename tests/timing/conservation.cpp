// Invariants of every simulation, on random workloads and on the programs of collectives.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/tile/program.hpp>

#include "checker.hpp"
#include "engines/timing/reader.hpp"
#include "ops/checks.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/operators.hpp"
#include "ops/plan_check/gemm_lanes.hpp"
#include "ops/timing/predictor.hpp"
#include "random_work.hpp"
#include "tests/errors.hpp"

namespace timing_test {
namespace {

using timing::link_kind;
using timing::simulate;
using timing::simulation;

constexpr link_kind all_links[] = {link_kind::nvswitch, link_kind::ring, link_kind::pairs,
                                   link_kind::host};
constexpr int seeds = 60;

random_shape shape_of(std::uint64_t seed) {
  return {.ranks = 1 + static_cast<int>(seed % 7),
          .workers = 1 + static_cast<int>(seed % 4),
          .activities = 20 + static_cast<int>(seed * 7 % 150)};
}

std::string all_of(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) text += problem + "\n";
  return text;
}

TEST(conservation, holds_on_random_workloads) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const link_kind links : all_links) {
      timing::machine m = sample_machine(links);
      m.numbers.jitter = seed % 2 == 0 ? 1e-6 : 0;
      const random_work random(shape_of(seed), seed);
      const simulation run = simulate(random.work, m, {.seed = seed, .keeps_spans = true});
      EXPECT_EQ(all_of(checker(random.work, m, run).problems()), "")
          << "seed " << seed << ", links " << name_of(links);
    }
  }
}

TEST(conservation, holds_over_hosts) {
  timing::machine m = sample_machine();
  m.gpus_of_host = 2;
  m.cards_of_host = 1;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const random_work random({.ranks = 6, .workers = 2, .activities = 120}, seed);
    const simulation run = simulate(random.work, m, {.keeps_spans = true});
    EXPECT_EQ(all_of(checker(random.work, m, run).problems()), "") << "seed " << seed;
  }
}

TEST(conservation, holds_for_the_programs_of_collectives) {
  const timing::machine m = sample_machine();
  for (const untax::collective_entry& entry : untax::collectives()) {
    for (const int ranks : {1, 2, 5}) {
      std::vector<untax::program> programs;
      const untax::collective_problem problem{.count = 40'000, .type = untax::dtype::bf16};
      for (int rank = 0; rank < ranks; ++rank) {
        programs.push_back(entry.program_of(
            problem, entry.plan(problem, ranks, rank, {.workers = 3, .chunk_bytes = 8192})));
      }
      const timing::workload work = timing::read_programs(
          programs, 1, [](const untax::kernel&) { return timing::step_costs{.move_pace = 4e10}; });
      const simulation run = simulate(work, m, {.keeps_spans = true});
      EXPECT_EQ(all_of(checker(work, m, run).problems()), "") << entry.name << ", " << ranks;
      // Between ranks everything that a collective has to send was sent.
      double sent = 0;
      for (const timing::lane& l : run.lanes) sent = std::max(sent, l.what == 'o' ? l.bytes : 0);
      EXPECT_GE(sent * 1.001, entry.bytes(problem, ranks)) << entry.name << ", " << ranks;
    }
  }
}

timing::step_costs sample_costs(const untax::kernel& k) {
  return {.launch = k.stage == 0 ? 2e-6 : 1e-6, .k_seconds = 1e-9, .move_pace = 4e10};
}

/// A program that is written out already.
class written_out {
 public:
  explicit written_out(untax::schedule::rank_plan plan) : plan_(std::move(plan)) {}
  [[nodiscard]] int rank() const { return plan_.rank(); }
  [[nodiscard]] int world() const { return plan_.world(); }
  [[nodiscard]] int counters() const { return plan_.counters(); }
  [[nodiscard]] int kernels() const { return static_cast<int>(plan_.kernels().size()); }
  [[nodiscard]] untax::kernel kernel_at(int i) const {
    return plan_.kernels()[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] untax::extent inbox() const { return {}; }
  [[nodiscard]] untax::extent outbox() const { return {}; }
  [[nodiscard]] untax::extent tile_extent() const { return plan_.tile(); }
  template <class Emit>
  void program(int kernel, int worker, std::uint64_t epoch, Emit&& emit) const {
    for (const untax::step& s : plan_.steps({kernel, worker}, epoch)) emit(s);
  }

 private:
  untax::schedule::rank_plan plan_;
};

/// One epoch of what all ranks do.
timing::workload work_of(const std::vector<untax::schedule::rank_plan>& plans) {
  std::vector<untax::program> programs;
  for (const auto& plan : plans) programs.emplace_back(written_out(plan));
  return timing::read_programs(programs, 1, sample_costs);
}

TEST(conservation, holds_for_the_programs_of_all_operators) {
  std::uint64_t seed = 0;
  for (const untax::operator_spec& operation : untax::operator_specs()) {
    for (const untax::protocol_variant& variant : untax::variants_of(operation)) {
      for (const int ranks : {1, 2, 3}) {
        for (const untax::schedule_case& c : variant.schedule_cases(ranks, true)) {
          timing::machine m = sample_machine(all_links[++seed % std::size(all_links)]);
          m.numbers.jitter = seed % 3 == 0 ? 1e-6 : 0;
          const timing::workload work = work_of(c.plans());
          const simulation run = simulate(work, m, {.seed = seed, .keeps_spans = true});
          EXPECT_EQ(all_of(checker(work, m, run).problems()), "")
              << c.name << ", links " << name_of(m.links);
        }
      }
    }
  }
  EXPECT_GT(seed, 500U);
}

/// Parts of a sum go to the rank that adds them, and in two phases both results go to all ranks.
TEST(conservation, a_normalised_sum_is_sent_to_all) {
  constexpr int ranks = 3;
  int seen = 0;
  for (const untax::protocol_variant& variant : variants_of(untax::spec<untax::all_reduce_norm>)) {
    const bool two = variant.name.ends_with("two phases");
    for (const untax::schedule_case& c : variant.schedule_cases(ranks, true)) {
      const auto plans = c.plans();
      const untax::extent whole = plans.front().extent_of(untax::operand::c);
      const simulation run = simulate(work_of(plans), sample_machine());
      double sent = 0;
      for (const timing::lane& l : run.lanes) sent += l.what == 'o' ? l.bytes : 0;
      const double parts = 2.0 * static_cast<double>(whole.rows * whole.cols / 2);
      EXPECT_EQ(sent, (ranks - 1) * parts * (two ? 3 : ranks)) << c.name;
      ++seen;
    }
  }
  EXPECT_GT(seen, 20);
}

TEST(conservation, planted_faults_are_found) {
  const timing::machine m = sample_machine();
  const random_work random({}, 3);
  const simulation right = simulate(random.work, m, {.keeps_spans = true});
  ASSERT_EQ(all_of(checker(random.work, m, right).problems()), "");
  const auto finds = [&](auto&& plant) {
    simulation wrong = right;
    plant(wrong);
    return !checker(random.work, m, wrong).problems().empty();
  };
  EXPECT_TRUE(finds([](simulation& s) { s.bookings[5].end -= 1e-7; })) << "more than the rate";
  EXPECT_TRUE(finds([](simulation& s) {
    s.bookings[5].begin -= 1e-5;
    s.bookings[5].end -= 1e-5;
  })) << "before it was there";
  EXPECT_TRUE(finds([](simulation& s) { s.bookings.push_back(s.bookings[7]); })) << "two at once";
  EXPECT_TRUE(finds([](simulation& s) { s.seconds *= 0.1; })) << "quicker than the bound";
  EXPECT_TRUE(finds([](simulation& s) { s.workers[0].compute += 1e-6; })) << "parts";
  // Every span of work, longer at its front, runs into what its worker did before.
  int longer = 0;
  int seen = 0;
  for (std::size_t i = 0; i < right.spans.size(); ++i) {
    if (right.spans[i].part != &timing::time_parts::compute) continue;
    ++longer;
    seen += finds([i](simulation& s) { s.spans[i].begin -= 2e-5; }) ? 1 : 0;
  }
  EXPECT_GT(seen, longer / 2);
}

TEST(conservation, a_signal_that_is_ignored_is_found) {
  // The machine under test is that of a fault: signals arrive before they are sent.
  const timing::machine m = sample_machine();
  int result = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const random_work random({.ranks = 4, .workers = 2, .activities = 80}, seed);
    timing::workload deaf = random.work;
    for (timing::activity& a : deaf.activities()) a.waits = 0;
    const simulation run = simulate(deaf, m, {.keeps_spans = true});
    result += checker(random.work, m, run).problems().empty() ? 0 : 1;
  }
  EXPECT_GT(result, seeds * 3 / 4);
}

TEST(conservation, the_same_seed_gives_the_same_times) {
  timing::machine m = sample_machine();
  m.numbers.jitter = 1e-6;
  const random_work random({}, 5);
  EXPECT_EQ(simulate(random.work, m, {.seed = 9}).seconds,
            simulate(random.work, m, {.seed = 9}).seconds);
  EXPECT_NE(simulate(random.work, m, {.seed = 9}).rank_seconds,
            simulate(random.work, m, {.seed = 1}).rank_seconds);
}

TEST(conservation, a_faster_machine_is_never_slower) {
  // Transfers that wait for a link go in the order in which they come, so one that comes earlier
  // may hold others up; in random workloads that has been up to 1.4 % of the whole. predicted.cpp
  // holds operators to 1 %.
  constexpr double order = 1.03;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const random_work random(shape_of(seed), seed);
    const timing::machine m = sample_machine();
    const double before = simulate(random.work, m).seconds;
    timing::machine faster = m;
    faster.numbers.link_rate *= 1.5;
    faster.numbers.read_rate *= 1.5;
    EXPECT_LE(simulate(random.work, faster).seconds, before * order) << "seed " << seed;
    timing::workload quicker = random.work;
    for (timing::activity& a : quicker.activities()) a.busy *= 0.7;
    EXPECT_LE(simulate(quicker, m).seconds, before * order) << "seed " << seed;
    // Everything twice as fast takes half the time.
    timing::machine twice = m;
    for (auto member : {&timing::machine_numbers::memory_rate, &timing::machine_numbers::link_rate,
                        &timing::machine_numbers::read_rate})
      twice.numbers.*member *= 2;
    for (auto member : {&timing::machine_numbers::store, &timing::machine_numbers::release,
                        &timing::machine_numbers::look})
      twice.numbers.*member /= 2;
    timing::workload half(random.work);
    for (timing::activity& a : half.activities()) {
      a.busy /= 2;
      a.pace *= 2;
    }
    const double launches = 2e-6;  // stay as they are
    EXPECT_LE(simulate(half, twice).seconds, before / 2 * order + launches);
  }
}

/// The CTAs of a GEMM of whole tiles.
untax::schedule::lane_program lanes_of(const untax::gpu::gemm_plan& plan) {
  using untax::operand;
  using untax::program;
  untax::schedule::lane_program lanes({});
  lanes.begin_kernel("gemm", 0, untax::schedule::lane_work::multiplies);
  untax::plan_check::gemm_lanes gemm;
  gemm.plan = &plan;
  gemm.k = std::int64_t{plan.schedule.k_blocks} * untax::gpu::block_k;
  gemm.read = [](const untax::gpu::cta_read& tile_read, std::uint64_t, const auto& visit) {
    visit(untax::plan_check::factors{
        .rows = tile_read.a.count,
        .cols = tile_read.b.count,
        .depth = std::int64_t{tile_read.end - tile_read.begin} * untax::gpu::block_k,
        .a = {operand::a, 0, tile_read.a.begin,
              std::int64_t{tile_read.begin} * untax::gpu::block_k},
        .b = {operand::b, 0, tile_read.b.begin,
              std::int64_t{tile_read.begin} * untax::gpu::block_k},
        .c = {operand::c, 0, tile_read.a.begin, tile_read.b.begin},
        .waits = {}});
  };
  gemm.store = [](const untax::plan_check::cta_work&, const untax::step& tile, std::uint64_t,
                  const program::sink& emit) { emit(tile); };
  static_cast<void>(untax::plan_check::add_gemm(lanes, gemm));
  return lanes;
}

TEST(conservation, one_rank_alone_takes_compute_and_launch) {
  timing::machine m = sample_machine();
  m.numbers.look = 0;  // CTAs that share a tile signal each other
  for (const int m_rows : {1, 100, 2000}) {
    const auto plans = untax::gpu::gemm_plans({m_rows, 4096, 4096}, 132);
    for (const auto& plan : plans) {
      const timing::step_costs costs{.launch = 3e-6, .k_seconds = untax::k_seconds_of(plan, 1e-4)};
      const timing::workload work = timing::read_lanes(
          std::vector{lanes_of(plan)}, [&](untax::schedule::lane_work, int) { return costs; });
      const simulation run = simulate(work, m, {.keeps_path = true});
      EXPECT_NEAR(run.seconds, 1.03e-4, 1e-12) << plan.text();
      EXPECT_NEAR(run.path_parts().compute, 1e-4, 1e-12);
      EXPECT_NEAR(run.path_parts().launch, 3e-6, 1e-12);
    }
  }
}

TEST(conservation, workers_of_a_kernel_with_a_rate_send_in_turn) {
  const timing::machine m = sample_machine();
  const auto seconds = [&](double rate) {
    timing::workload work(2);
    const int kernel = work.add_kernel(0, 0, "senders", 0, rate);
    for (int worker = 0; worker < 3; ++worker) {
      work.add_worker(kernel);
      work.act({.bytes = 1e3, .from = 0, .to = 1});
    }
    return simulate(work, m).seconds;
  };
  const double together = 3e3 / m.numbers.link_rate + m.numbers.store;
  EXPECT_NEAR(seconds(0), together, 1e-12);
  // The third one begins when two others have sent at that rate.
  EXPECT_NEAR(seconds(1e9), 2e3 / 1e9 + 1e3 / m.numbers.link_rate + m.numbers.store, 1e-12);
}

TEST(conservation, a_release_within_a_rank_comes_after_stores_to_others) {
  const timing::machine m = sample_machine();
  timing::workload work(2);
  const int kernel = work.add_kernel(0, 0, "both", 0);
  work.add_worker(kernel);
  work.act({.bytes = 1e3, .from = 0, .to = 1, .detached = true});
  work.raise({0, 0, 1});
  work.act({.posted = true});
  work.add_worker(kernel);
  work.wait({0, 0, 1});
  work.act({.busy = 1e-6});
  const double receipt = 1e3 / m.numbers.link_rate + 2 * m.numbers.store;
  EXPECT_NEAR(simulate(work, m).seconds, receipt + m.numbers.look + 1e-6, 1e-12);
}

TEST(conservation, the_critical_path_is_as_long_as_the_run) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const random_work random(shape_of(seed), seed);
    const simulation run = simulate(random.work, sample_machine(), {.keeps_path = true});
    EXPECT_NEAR(run.path_parts().total(), run.seconds, 1e-12) << "seed " << seed;
  }
}

TEST(conservation, a_wait_without_a_signal_is_named) {
  timing::workload work(2);
  work.add_worker(work.add_kernel(0, 0, "lonely", 0));
  work.wait({0, 4, 2});
  work.act({.busy = 1e-6});
  untax_test::expect_error(untax_test::error_of([&] { (void)simulate(work, sample_machine()); }),
                           untax::errc::internal,
                           {"rank 0, kernel lonely", "counter 4", "needs 2, has 0"});
}

}  // namespace
}  // namespace timing_test
