// The GEMM operators on GPUs: random shapes in every pattern against a plain loop that adds in
// fp32, with poisoned results, under random stalls of ranks, and replayed from graphs.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/all_gather_gemm.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/ops/gemm_reduce_scatter.hpp>
#include <untax/world/launch.hpp>

#include "engines/bulk/slab_gather.hpp"
#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/gemm_all_reduce/spec.hpp"
#include "ops/gemm_all_scatter/spec.hpp"
#include "ops/gemm_reduce_scatter/spec.hpp"

namespace {

using namespace gpu_test;
using untax::direction;
using untax::errc;

/// The same at all ranks.
class case_maker {
 public:
  explicit case_maker(std::uint64_t seed) : random_(seed) {}

  gemm_problem make(const operator_entry& entry) {
    gemm_problem p;
    constexpr std::int64_t most_rows[] = {16, 300, 300, 5000};
    p.m = between(1, most_rows[between(0, 3)]);
    p.n = 8 * between(1, between(0, 1) == 0 ? 1125 : 100);
    p.k = 8 * between(1, between(0, 1) == 0 ? 1125 : 100);
    p.type = between(0, 1) == 0 ? dtype::bf16 : dtype::f16;
    if (entry.gathers) p.gather = between(0, 1) == 0 ? gather_axis::rows : gather_axis::k;
    if (entry.sums_to && between(0, 1) == 1) p.partials = dtype::f32;
    return p;
  }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

 private:
  std::mt19937_64 random_;
};

/// The operator, or null where it refuses the pattern; what it says then.
std::unique_ptr<workload> made(world& w, const operator_entry& entry, const gemm_problem& p,
                               const operator_options& options, std::uint64_t seed,
                               std::string& refusal) {
  try {
    return std::make_unique<workload>(w, entry, p, options, seed);
  } catch (const untax::error& e) {
    if (e.code() != errc::unsupported) throw;
    refusal = e.what();
    return nullptr;
  }
}

/// Random problems for every number of ranks, each in every pattern, several epochs.
void check_cases(const operator_entry& entry, int cases) {
  NEEDS_GPUS(1);
  const std::uint64_t first_seed = std::random_device{}();
  std::map<std::string, int> refusals;
  for (int ranks = 1; ranks <= gpus(); ranks = ranks < 4 ? ranks + 1 : 2 * ranks) {
    untax::run_gpus(
        ranks,
        [&](world& w) {
          const stream s;
          const auto kept = ranks > 1 && sharing() == 1 ? untax::bulk::communicator_of(w) : nullptr;
          case_maker maker(first_seed + static_cast<std::uint64_t>(ranks));
          std::mt19937_64 stalls(static_cast<std::uint64_t>(w.rank()) * 977 + first_seed);
          for (int i = 0; i < cases; ++i) {
            const gemm_problem p = maker.make(entry);
            for (const pattern how : untax::all_patterns) {
              operator_options options{.how = how};
              // Where a pattern has no choice, it pushes.
              options.move = maker.between(0, 1) == 0 ? direction::push : direction::pull;
              options.constant_weights = maker.between(0, 1) == 0;
              // All operands at all ranks take much memory.
              if (entry.phases && p.m <= 300)
                options.phases = static_cast<int>(maker.between(0, 2));
              SCOPED_TRACE(fmt::format("seed {}, rank {} of {}, case {}: {}", first_seed, w.rank(),
                                       ranks, i, text_of(entry, p, options)));
              std::string refusal;
              const auto load = made(w, entry, p, options, first_seed, refusal);
              if (!load) {
                if (w.rank() == 0) ++refusals[std::string(name_of(how))];
                continue;
              }
              expect_right(w, s, *load, tolerance_of(entry, p), first_seed, stalls);
            }
          }
        },
        roomy_world());
    if (::testing::Test::HasFailure()) return;
  }
  for (const auto& [name, count] : refusals)
    std::cout << "left out, since it is refused: " << name << " of " << entry.name << ", " << count
              << " cases\n";
}

TEST(gpu_operators, all_gather_gemm_is_right) {
  check_cases(untax::all_gather_gemm_entry(), gpu_test::cases(12));
}
TEST(gpu_operators, gemm_all_scatter_is_right) {
  check_cases(untax::gemm_all_scatter_entry(), gpu_test::cases(12));
}

TEST(gpu_operators, gemm_reduce_scatter_is_right) {
  check_cases(untax::gemm_reduce_scatter_entry(), gpu_test::cases(12));
}
TEST(gpu_operators, gemm_all_reduce_is_right) {
  check_cases(untax::gemm_all_reduce_entry(), gpu_test::cases(12));
}

/// Runs of an operator in a graph, each behind a stall, replayed. Weights are constant, so that
/// with few rows the second run of two reads some while the first one ends.
void check_replays(const operator_entry& entry, const gemm_problem& p, int replays,
                   direction move = direction::push) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  for (const pattern how : untax::all_patterns) {
    if (how == pattern::automatic) continue;
    untax::run_gpus(
        gpus(),
        [&](world& w) {
          const operator_options options{.how = how, .move = move, .constant_weights = true};
          SCOPED_TRACE(fmt::format("rank {}: {}", w.rank(), text_of(entry, p, options)));
          const stream s;
          std::string refusal;
          const auto load = made(w, entry, p, options, 5, refusal);
          if (!load) {
            if (w.rank() == 0) std::cout << "left out: " << refusal << "\n";
            return;
          }
          // Kernels are loaded, and C is known, before anything is captured.
          load->launch(s.get());
          EXPECT_TRUE(s.done());
          cudaGraph_t graph = nullptr;
          cudaGraphExec_t replay = nullptr;
          ok(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeThreadLocal));
          stall(s, w.rank() * 20);
          load->launch(s.get());
          load->launch(s.get());
          ok(cudaStreamEndCapture(s.get(), &graph));
          ok(cudaGraphInstantiate(&replay, graph, 0));
          ok(cudaGraphUpload(replay, s.get()));
          EXPECT_TRUE(s.done());
          // NCCL lets GPUs of one process see all memory of each other, and then taking memory, as
          // a graph does when it is made, waits for kernels of peers.
          w.barrier();
          for (int i = 0; i < replays; ++i) ok(cudaGraphLaunch(replay, s.get()));
          EXPECT_TRUE(s.done());
          w.check();
          EXPECT_LE(load->relative_error(), tolerance_of(entry, p)) << load->explain();
          // And once more, on other values.
          load->refresh(6);
          load->poison_result();
          ok(cudaGraphLaunch(replay, s.get()));
          EXPECT_TRUE(s.done());
          w.check();
          EXPECT_LE(load->relative_error(), tolerance_of(entry, p)) << load->explain();
          ok(cudaGraphExecDestroy(replay));
          ok(cudaGraphDestroy(graph));
          w.barrier();
        },
        roomy_world());
  }
}

constexpr gemm_problem replayed(gather_axis gather) {
  return {.m = 333, .n = 520, .k = 1000, .type = dtype::bf16, .gather = gather};
}

TEST(gpu_operators, all_gather_gemm_is_right_a_thousand_times) {
  check_replays(untax::all_gather_gemm_entry(), replayed(gather_axis::rows), 1000);
}
TEST(gpu_operators, all_gather_gemm_by_k_is_right_in_a_graph) {
  check_replays(untax::all_gather_gemm_entry(), replayed(gather_axis::k), 100);
}
/// The kernel takes all multiprocessors and waits for what little there is of A.
TEST(gpu_operators, all_gather_gemm_of_one_row_is_right_in_a_graph) {
  for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
    check_replays(untax::all_gather_gemm_entry(),
                  {.m = 1, .n = 3584, .k = 8192, .type = dtype::bf16, .gather = gather}, 20);
  }
}
/// Shards go in TMA tiles, the last of which are cut off.
TEST(gpu_operators, all_gather_gemm_of_large_shards_is_right_in_a_graph) {
  for (const std::int64_t m : {1100, 3001}) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
      check_replays(untax::all_gather_gemm_entry(),
                    {.m = m, .n = 520, .k = 8200, .type = dtype::bf16, .gather = gather}, 20);
    }
  }
}
/// The same to the rank itself, too, where A is collected: of few long rows.
TEST(gpu_operators, all_gather_gemm_of_long_rows_is_right_in_a_graph) {
  check_replays(untax::all_gather_gemm_entry(),
                {.m = 60L * gpus(), .n = 520, .k = 72008, .type = dtype::bf16}, 20);
}
/// With 2 and 4 GPUs the two blocks of a cluster have rows of different sources, and the last
/// source has fewer rows.
TEST(gpu_operators, all_gather_gemm_of_two_sources_a_cluster_is_right_in_a_graph) {
  for (const direction move : {direction::push, direction::pull}) {
    check_replays(untax::all_gather_gemm_entry(),
                  {.m = 125L * gpus() - 1, .n = 1000, .k = 2056, .type = dtype::f16}, 100, move);
  }
}
/// Packets, which no counter guards unless a rank has no rows: some end within a k-block, or in the
/// last k-block but one of a stage.
TEST(gpu_operators, all_gather_gemm_of_few_rows_is_right_in_a_graph) {
  for (const std::int64_t m : {3, 4, 16}) {
    for (const std::int64_t k : {72, 1000}) {
      check_replays(untax::all_gather_gemm_entry(),
                    {.m = m, .n = 520, .k = k, .type = dtype::f16, .gather = gather_axis::rows},
                    100);
    }
  }
}
/// Tiles that two blocks of a cluster share, or four. With gather = k the last shard may be so
/// short that a sender's chunk lies beyond its end.
TEST(gpu_operators, all_gather_gemm_with_shared_tiles_is_right_in_a_graph) {
  for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
    for (const std::int64_t m : {16, 32, 64, 128, 256}) {
      check_replays(untax::all_gather_gemm_entry(),
                    {.m = m, .n = 3000, .k = 4104, .type = dtype::bf16, .gather = gather}, 20);
    }
    check_replays(untax::all_gather_gemm_entry(),
                  {.m = 100, .n = 3000, .k = 520, .type = dtype::f16, .gather = gather}, 20);
  }
}
/// Weights that are read early belong to several tiles.
TEST(gpu_operators, operators_with_few_rows_are_right_in_a_graph) {
  const gemm_problem narrow{.m = 16, .n = 9000, .k = 200, .type = dtype::bf16};
  check_replays(untax::all_gather_gemm_entry(), narrow, 20);
  check_replays(untax::gemm_all_scatter_entry(), narrow, 20);
  check_replays(untax::gemm_all_scatter_entry(),
                {.m = 16, .n = 3584, .k = 8192, .type = dtype::bf16}, 20);
}
TEST(gpu_operators, sums_are_right_in_a_graph) {
  for (const operator_entry& entry :
       {untax::gemm_reduce_scatter_entry(), untax::gemm_all_reduce_entry()}) {
    check_replays(entry, replayed(gather_axis::rows), 100);
    for (const dtype partials : {dtype::bf16, dtype::f32}) {
      check_replays(
          entry, {.m = 16, .n = 3584, .k = 2048, .type = dtype::bf16, .partials = partials}, 100);
    }
  }
}
TEST(gpu_operators, gemm_all_scatter_is_right_in_a_graph) {
  check_replays(untax::gemm_all_scatter_entry(), replayed(gather_axis::rows), 100);
}

/// `automatic` that times what is likely when it is made: in the end there is one operator, which
/// is right, in the pattern that took the least.
TEST(gpu_operators, automatic_chooses_by_timing) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  untax::run_gpus(
      gpus(),
      [](world& w) {
        const stream s;
        for (const operator_entry& entry :
             {untax::all_gather_gemm_entry(), untax::gemm_all_scatter_entry()}) {
          const gemm_problem p{.m = 100, .n = 1032, .k = 520, .type = dtype::bf16};
          workload load(w, entry, p, {.how = pattern::automatic}, 3);
          EXPECT_NE(load.explain().find("chosen by timing it here: " +
                                        std::string(name_of(load.chosen()))),
                    std::string::npos)
              << load.explain();
          load.launch(s.get());
          EXPECT_TRUE(s.done());
          w.check();
          EXPECT_LE(load.relative_error(), tolerance_of(entry, p)) << load.explain();
        }
      },
      roomy_world());
}

TEST(gpu_operators, refuse_impossible_problems) {
  NEEDS_GPUS(1);
  std::vector<world> alone = world::local_gpus(1, roomy_world());
  world& w = alone[0];
  w.use_device();
  const auto refusal = [&](const untax::all_gather_gemm_problem& p) {
    return error_of([&] { untax::all_gather_gemm(w, p, {.how = pattern::bulk_library}); });
  };
  expect_error(refusal({.m = 8, .n = 8, .k = 8, .type = dtype::f32}), errc::invalid_argument,
               {"rank 0: all_gather_gemm", "fp32", "bf16 or fp16"});
  expect_error(refusal({.m = 8, .n = 12, .k = 8}), errc::invalid_argument,
               {"n is 12", "multiple of 8", "16 would do"});
  expect_error(refusal({.m = 8, .n = 8, .k = 30}), errc::invalid_argument, {"k is 30"});
  expect_error(
      error_of([&] {
        untax::gemm_reduce_scatter(w, {.m = 8, .n = 8, .k = 8}, {.how = pattern::copy_engine});
      }),
      errc::unsupported, {"rank 0: gemm_reduce_scatter", "no copy_engine", "fused_specialized"});

  const auto memory = w.allocate<untax::bf16>(1024, "elements");
  std::vector<untax::bf16> host(64);
  untax::all_gather_gemm op(w, {.m = 8, .n = 8, .k = 8}, {.how = pattern::bulk_library});
  const untax::matrix right(memory.local(), 8, 8);
  const untax::matrix c(memory.local(512), 8, 8);
  const auto run = [&](const untax::matrix& a) {
    return error_of([&] { op.run(as_const(a), as_const(right), c); });
  };
  expect_error(run({host.data(), 8, 8}), errc::invalid_argument,
               {"rank 0: all_gather_gemm: a lies at", "memory of the host"});
  expect_error(run({memory.local(65), 8, 8}), errc::invalid_argument, {"a lies at", "16 bytes"});
  expect_error(run({memory.local(), 8, 8, 16}), errc::invalid_argument, {"row stride of 16"});
  untax::gemm_all_scatter scatter(w, {.m = 8, .n = 8, .k = 8}, {.how = pattern::bulk_library});
  void* private_memory = nullptr;
  ok(cudaMalloc(&private_memory, 128));
  expect_error(error_of([&] {
                 scatter.run(as_const(right), as_const(right), {private_memory, dtype::bf16, 8, 8});
               }),
               errc::not_symmetric, {"gemm_all_scatter", "world.allocate"});
  ok(cudaFree(private_memory));
}

}  // namespace
