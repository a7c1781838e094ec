// flash_decode on GPUs, against fp64; where there is one GPU, alone.
#include <algorithm>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <untax/world/launch.hpp>

#include "attention_trial.cuh"
#include "ops/flash_decode/planning.hpp"

namespace {

using namespace gpu_test;
using untax::attention_work;
using untax::dtype;
using untax::flash_decode_options;
using untax::pattern;
using untax::world;

/// NCCL takes GPUs of their own.
std::vector<pattern> patterns() {
  std::vector<pattern> entries = {pattern::fused_sequential, pattern::bulk_synchronous,
                                  pattern::producer_consumer};
  if (sharing() == 1) entries.push_back(pattern::bulk_library);
  return entries;
}

untax::world_options roomy_world(std::chrono::milliseconds limit = 20s) {
  untax::world_options options = gpu_world(limit);
  options.heap_bytes = std::size_t{1} << 30;
  return options;
}

struct attention_case {
  attention_work work;
  flash_decode_options options;
  int ranks = 1;
  std::uint64_t seed = 1;
};

attention_case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  attention_case c;
  c.seed = seed;
  c.ranks = static_cast<int>(between(1, std::min(gpus(), 8)));
  untax::flash_decode_problem& p = c.work.problem;
  constexpr std::int64_t widths[] = {64, 128, 128, 256};
  p.head_dim = widths[between(0, 3)];
  p.kv_heads = between(1, 4);
  p.heads = p.kv_heads * between(1, 16);
  p.batch = between(0, 5) == 0 ? between(30, 70) : between(1, 5);
  p.keys = p.batch > 5 ? between(0, 60) : between(0, 600);
  if (between(0, 1) == 1) {
    p.page_size = between(0, 1) == 0 ? between(1, 70) : 16;
    p.pages = p.batch * pages_of_sequence(p) + between(1, 5);
  }
  p.type = between(0, 1) == 0 ? dtype::bf16 : dtype::f16;
  if (between(0, 2) == 0) p.partials = dtype::bf16;
  if (between(0, 3) == 0) p.logit_cap = 2.0F;
  c.work.uneven = between(0, 3) > 0;
  const std::vector<pattern> known_patterns = patterns();
  c.options.how = known_patterns[static_cast<std::size_t>(
      between(0, static_cast<int>(known_patterns.size()) - 1))];
  return c;
}

/// The same with splits that do not depend on the batch.
attention_case random_case_in_splits(std::uint64_t seed) {
  attention_case c = random_case(seed);
  c.ranks = 1;
  c.options.splits = static_cast<int>(std::mt19937_64(seed + 1)() % 8) + 1;
  return c;
}

/// Every rank has the same bits, and they are right.
void check_case(const attention_case& c) {
  SCOPED_TRACE(fmt::format("{}{}, W {}, {}, seed {}", describe(c.work.problem),
                           c.work.uneven ? ", uneven" : "", c.ranks, name_of(c.options.how),
                           c.seed));
  std::mutex mutex;
  std::vector<std::uint16_t> right;
  untax::run_gpus(
      c.ranks,
      [&](world& w) {
        const stream s;
        attention_trial trial(w, s, c.work, c.options, c.seed + 1);
        for (int epoch = 0; epoch < 2; ++epoch) trial.launch();
        // So what is left of these two epochs is not right in the next two.
        trial.refresh(c.seed);
        for (int epoch = 0; epoch < 2; ++epoch) trial.launch();
        ASSERT_TRUE(s.done());
        w.check();
        const auto bits = trial.bits();
        const double error = w.rank() == 0 ? trial.relative_error() : 0;
        const std::scoped_lock lock(mutex);
        EXPECT_LE(error, tolerance_of(c.work.problem));
        if (right.empty()) right = bits;
        EXPECT_EQ(bits == right, true) << "rank " << w.rank();
      },
      roomy_world());
}

TEST(gpu_flash_decode, is_right_for_random_shapes_lengths_and_pages) {
  NEEDS_GPUS(1);
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    check_case(random_case(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(gpu_flash_decode, in_splits_is_right_for_random_shapes_lengths_and_pages) {
  NEEDS_GPUS(1);
  for (std::uint64_t seed = 101; seed <= 124; ++seed) {
    check_case(random_case_in_splits(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

void check_patterns(const attention_work& work) {
  SCOPED_TRACE(describe(work.problem));
  std::mutex mutex;
  untax::run_gpus(
      std::min(gpus(), 8),
      [&](world& w) {
        const stream s;
        std::vector<std::uint16_t> right;
        for (const pattern how : patterns()) {
          attention_trial trial(w, s, work, {.how = how}, 5);
          trial.launch();
          EXPECT_TRUE(s.done());
          w.check();
          const auto bits = trial.bits();
          const std::scoped_lock lock(mutex);
          if (right.empty()) right = bits;
          EXPECT_EQ(bits == right, true) << name_of(how) << ", rank " << w.rank();
        }
      },
      roomy_world());
}

TEST(gpu_flash_decode, gives_the_same_bits_in_every_pattern) {
  NEEDS_GPUS(1);
  for (const dtype partials : {dtype::f32, dtype::bf16}) {
    attention_work work;
    work.problem = {.batch = 2, .heads = 32, .kv_heads = 4, .head_dim = 128, .keys = 3000};
    work.problem.partials = partials;
    work.uneven = true;
    check_patterns(work);
    // One item, of which every block has a part, so all blocks have to be resident.
    work.problem = {.batch = 1, .heads = 8, .kv_heads = 1, .head_dim = 128, .keys = 30'000};
    work.problem.partials = partials;
    work.uneven = false;
    check_patterns(work);
    // Equal sequences of which every block, or all but a few, has whole items.
    for (const std::int64_t batch : {16, 64}) {
      work.problem = {.batch = batch,
                      .heads = 256 / batch,
                      .kv_heads = 128 / batch,
                      .head_dim = 128,
                      .keys = 700};
      work.problem.partials = partials;
      check_patterns(work);
    }
  }
}

/// In a graph of three kernels, of which the one before changes the lengths late.
void check_changing_lengths(const attention_work& work, const flash_decode_options& options) {
  SCOPED_TRACE(fmt::format("{}, {}, splits {}", describe(work.problem), name_of(options.how),
                           options.splits));
  untax::run_gpus(
      options.splits > 0 ? 1 : std::min(gpus(), 8),
      [&](world& w) {
        const stream s;
        attention_trial trial(w, s, work, options, 3);
        const auto batch = static_cast<int>(work.problem.batch);
        const auto keys = static_cast<unsigned>(work.problem.keys);
        std::vector<std::vector<std::int32_t>> sets;
        std::mt19937 random(static_cast<unsigned>(w.rank()));
        for (int i = 0; i < 7; ++i) {
          sets.emplace_back();
          for (int b = 0; b < batch; ++b)
            sets.back().push_back(b == i ? 0 : static_cast<std::int32_t>(random() % (keys + 1)));
        }
        trial.expect_lengths(sets);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t replay = nullptr;
        ok(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeThreadLocal));
        trial.launch_and_compare(40);
        ok(cudaStreamEndCapture(s.get(), &graph));
        ok(cudaGraphInstantiate(&replay, graph, 0));
        for (int i = 0; i < 1000; ++i) ok(cudaGraphLaunch(replay, s.get()));
        EXPECT_TRUE(s.done());
        w.check();
        EXPECT_EQ(trial.wrong(), 0U) << "rank " << w.rank();
        ok(cudaGraphExecDestroy(replay));
        ok(cudaGraphDestroy(graph));
      },
      roomy_world());
}

TEST(gpu_flash_decode, a_graph_follows_lengths_that_change_a_thousand_times) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  for (const pattern how : patterns()) {
    attention_work work;
    work.problem = {.batch = 5, .heads = 8, .kv_heads = 2, .head_dim = 128, .keys = 900};
    check_changing_lengths(work, {.how = how});
    work.problem.page_size = 16;
    work.problem.pages = 5 * pages_of_sequence(work.problem) + 3;
    check_changing_lengths(work, {.how = how});
    check_changing_lengths(work, {.how = how, .splits = 5});
  }
  // More sequences than the lengths that a warp keeps.
  attention_work many;
  many.problem = {.batch = 150, .heads = 4, .kv_heads = 1, .head_dim = 64, .keys = 90};
  check_changing_lengths(many, {});
  check_changing_lengths(many, {.splits = 3});
}

TEST(gpu_flash_decode, a_rank_that_stays_away_is_named) {
  NEEDS_GPUS(2);
  const untax::error e = error_of([&] {
    untax::run_gpus(
        2,
        [&](world& w) {
          const stream s;
          attention_work work;
          work.problem = {.batch = 1, .heads = 8, .kv_heads = 2, .head_dim = 64, .keys = 300};
          attention_trial trial(w, s, work, {}, 1);
          if (w.rank() == 0) {
            trial.launch();
            EXPECT_TRUE(s.done()) << "the context is broken";
            w.check();
          }
          // The kernel's wait has to be the first to reach the limit.
          std::this_thread::sleep_for(300ms);
          w.barrier();
        },
        roomy_world(500ms));
  });
  expect_error(e, untax::errc::timeout, {"flash_decode acquire", "rank 1"});
}

TEST(gpu_flash_decode, refuses_problems_without_a_kernel) {
  NEEDS_GPUS(1);
  std::vector<world> alone = world::local_gpus(1, roomy_world());
  alone[0].use_device();
  const auto refused = [&](std::int64_t heads, std::int64_t width, dtype type) {
    return error_of([&] {
      (void)untax::flash_decode(
          alone[0],
          {.batch = 1, .heads = heads, .kv_heads = 1, .head_dim = width, .keys = 8, .type = type});
    });
  };
  expect_error(refused(17, 64, dtype::bf16), untax::errc::unsupported, {"16 heads", "not 17"});
  expect_error(refused(1, 80, dtype::bf16), untax::errc::unsupported, {"64, 128 and 256", "80"});
  expect_error(refused(1, 64, dtype::f32), untax::errc::unsupported, {"not fp32"});
  const untax::error splits = error_of([&] {
    (void)untax::flash_decode(alone[0], {.heads = 1, .head_dim = 64, .keys = 8}, {.splits = 9});
  });
  expect_error(splits, untax::errc::invalid_argument, {"option splits is 9", "between 0 and 8"});
}

TEST(gpu_flash_decode, refuses_splits_between_ranks) {
  NEEDS_GPUS(2);
  const untax::error e = error_of([&] {
    untax::run_gpus(
        2,
        [](world& w) {
          (void)untax::flash_decode(w, {.heads = 1, .head_dim = 64, .keys = 8}, {.splits = 2});
        },
        roomy_world());
  });
  expect_error(e, untax::errc::invalid_argument, {"option splits is 2", "this one has 2"});
}

}  // namespace
