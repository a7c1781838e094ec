// Operators on GPUs that were planned for any number of rows: runs of random ones, each against a
// plain loop, with poisoned results, eagerly and in graphs.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_all_reduce/spec.hpp"
#include "ops/gemm_all_scatter/spec.hpp"
#include "ops/gemm_reduce_scatter/spec.hpp"
#include "row_inputs.hpp"

namespace {

using namespace gpu_test;
/// The same as `each_pattern` for all patterns, and random numbers of rows up to the most.
template <class Check>
void random_rows(const operator_entry& entry, const gemm_problem& most, const Check& check) {
  const auto rows = [&](std::mt19937_64& random) {
    std::vector<std::int64_t> numbers{1, most.m};
    for (int i = 0; i < 10; ++i)
      numbers.push_back(1 + static_cast<std::int64_t>(
                                random() % static_cast<std::uint64_t>(i < 4 ? 16 : most.m)));
    return numbers;
  };
  each_pattern(untax::all_patterns, entry, most, rows, check);
}

void check_rows(const operator_entry& entry, const gemm_problem& most) {
  NEEDS_GPUS(1);
  const int runs = cases(200);
  random_rows(entry, most,
              [&](world& w, untax::runnable& op, auto& inputs, auto& random, const stream& s) {
                std::size_t free_before = 0;
                std::size_t free_after = 0;
                std::size_t total = 0;
                for (int i = 0; i < runs; ++i) {
                  const row_inputs& now = inputs[random() % inputs.size()];
                  now.launch(op, s);
                  if (i % 7 != 0 && i + 1 < runs) continue;
                  ASSERT_TRUE(s.done());
                  w.check();
                  now.expect_right(s);
                  if (::testing::Test::HasFailure()) return;
                  ok(cudaMemGetInfo(free_before == 0 ? &free_before : &free_after, &total));
                }
                // Ranks that share a GPU check at different times, with memory of their own.
                if (sharing() == 1 && runs > 7) {
                  EXPECT_EQ(free_before, free_after)
                      << "a run has allocated something, or another process uses this GPU";
                }
              });
}

gemm_problem any_rows(gather_axis gather) {
  return {.m = 300, .n = 520, .k = 1032, .type = dtype::bf16, .gather = gather};
}

TEST(gpu_capacity, all_gather_gemm_takes_any_number_of_rows) {
  check_rows(untax::all_gather_gemm_entry(), any_rows(gather_axis::rows));
}
TEST(gpu_capacity, all_gather_gemm_by_k_takes_any_number_of_rows) {
  check_rows(untax::all_gather_gemm_entry(), any_rows(gather_axis::k));
}
TEST(gpu_capacity, gemm_all_scatter_takes_any_number_of_rows) {
  check_rows(untax::gemm_all_scatter_entry(), any_rows(gather_axis::rows));
}

/// With partial results of both types.
void check_rows_of_sums(const operator_entry& entry) {
  gemm_problem most = any_rows(gather_axis::rows);
  check_rows(entry, most);
  most.partials = dtype::f32;
  check_rows(entry, most);
}
TEST(gpu_capacity, gemm_reduce_scatter_takes_any_number_of_rows) {
  check_rows_of_sums(untax::gemm_reduce_scatter_entry());
}
TEST(gpu_capacity, gemm_all_reduce_takes_any_number_of_rows) {
  check_rows_of_sums(untax::gemm_all_reduce_entry());
}

/// Microseconds of each of some runs that follow each other.
double time_of(const row_inputs& inputs, untax::runnable& op, const stream& s) {
  constexpr int runs = 50;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) inputs.run(op, s);
  EXPECT_TRUE(s.done());
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return took.count() / runs;
}

std::vector<operator_entry> with_capacity() {
  return {untax::all_gather_gemm_entry(), untax::gemm_all_scatter_entry(),
          untax::gemm_reduce_scatter_entry(), untax::gemm_all_reduce_entry()};
}

/// Prints what planning takes, and runs of m rows of a plan for 4 m rows beside those of a plan for
/// m; what they should take depends on the machine.
TEST(gpu_capacity, explains_its_plans) {
  NEEDS_GPUS(1);
  for (const operator_entry& entry : with_capacity()) {
    for (const std::int64_t m : {16, 200, 1024}) {
      untax::run_gpus(
          gpus(),
          [&](world& w) {
            const gemm_problem p{.m = m, .n = 3584, .k = 4096, .type = dtype::bf16};
            gemm_problem most = p;
            most.m = 4 * m;
            const pattern how = pattern::fused_sequential;
            const stream s;
            const auto exact = entry.make(w, p, {.how = how});
            const auto begin = std::chrono::steady_clock::now();
            const auto any = entry.make(w, most, {.how = how, .varying_rows = true});
            const std::chrono::duration<double, std::milli> planning =
                std::chrono::steady_clock::now() - begin;
            const row_inputs by_exact(w, entry, p, exact->result(), 1, s);
            const row_inputs by_any(w, entry, p, any->result(), 1, s);
            w.barrier();
            std::vector<double> exact_times;
            std::vector<double> any_times;
            for (int round = 0; round < 11; ++round) {
              exact_times.push_back(time_of(by_exact, *exact, s));
              w.barrier();
              any_times.push_back(time_of(by_any, *any, s));
              w.barrier();
            }
            w.check();
            by_any.expect_right(s);
            std::ranges::sort(exact_times);
            std::ranges::sort(any_times);
            if (w.rank() > 0) return;
            std::cout << fmt::format(
                "{}, {} ranks, m {}: planned for {} rows in {:.1f} ms; a run {:.2f} us, of a plan "
                "for m {:.2f} us: {:.3f}\n",
                entry.name, w.size(), m, most.m, planning.count(), any_times[5], exact_times[5],
                any_times[5] / exact_times[5]);
          },
          roomy_world());
    }
  }
}

TEST(gpu_capacity, a_graph_has_the_rows_that_it_was_captured_with) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  for (const operator_entry& entry : with_capacity()) {
    random_rows(entry, any_rows(gather_axis::rows),
                [&](world& w, untax::runnable& op, auto& inputs, auto& random, const stream& s) {
                  std::deque<cudaGraphExec_t> graphs;
                  for (const row_inputs& input : inputs) {
                    input.launch(op, s);
                    ASSERT_TRUE(s.done());
                    cudaGraph_t graph = nullptr;
                    ok(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeThreadLocal));
                    input.launch(op, s);
                    ok(cudaStreamEndCapture(s.get(), &graph));
                    ok(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
                    ok(cudaGraphUpload(graphs.back(), s.get()));
                    ok(cudaGraphDestroy(graph));
                  }
                  EXPECT_TRUE(s.done());
                  w.barrier();
                  for (int i = 0; i < 100; ++i) {
                    const std::size_t now = random() % inputs.size();
                    // Runs between replays change nothing.
                    if (i % 3 == 0) {
                      inputs[random() % inputs.size()].launch(op, s);
                    }
                    ok(cudaGraphLaunch(graphs[now], s.get()));
                    if (i % 5 != 0) continue;
                    ASSERT_TRUE(s.done());
                    w.check();
                    inputs[now].expect_right(s);
                  }
                  EXPECT_TRUE(s.done());
                  for (const cudaGraphExec_t graph : graphs) ok(cudaGraphExecDestroy(graph));
                });
  }
}

}  // namespace
