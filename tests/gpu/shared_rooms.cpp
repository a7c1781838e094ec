// Plans of one operator that share a room: runs of random numbers of rows, in random order, each
// rank behind stalls of its own, launched and replayed from graphs. Their bits are those of the
// first run of the same rows, which is compared with a reference.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/collectives.hpp>
#include <untax/world/launch.hpp>

#include "engines/bulk/scratch.hpp"
#include "engines/gpu/matrix/matrix.hpp"
#include "gpus.hpp"
#include "operator_runs.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_all_reduce/spec.hpp"
#include "ops/gemm_reduce_scatter/spec.hpp"
#include "row_inputs.hpp"

namespace {

using namespace gpu_test;
using untax::matrix;
using untax::bulk::scratch;

using bits = std::vector<std::uint16_t>;

/// One number of rows: a run of them, and the bits of its result.
struct rows_case {
  std::int64_t rows = 0;
  std::function<void(const stream&)> launch;  ///< poisons the result, and runs
  std::function<bits(const stream&)> result;
  bits first;  ///< of the first run
};

bits bits_of(const matrix& c, const stream& s) {
  return values(static_cast<const std::uint16_t*>(c.data), c.span_bytes() / 2, s);
}

/// Runs all cases, again and again. `graphs`: from graphs, too.
void run_in_any_order(world& w, std::deque<rows_case>& worlds_cases, std::uint64_t seed,
                      bool graphs, const stream& s) {
  // All ranks choose the same cases, and other stalls.
  std::mt19937_64 random(seed);
  std::mt19937_64 stalls(seed + static_cast<std::uint64_t>(w.rank()));
  std::vector<cudaGraphExec_t> captured;
  for (rows_case& c : worlds_cases) {
    c.launch(s);
    c.first = c.result(s);
    if (!graphs) continue;
    cudaGraph_t graph = nullptr;
    ok(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeThreadLocal));
    c.launch(s);
    c.launch(s);
    ok(cudaStreamEndCapture(s.get(), &graph));
    ok(cudaGraphInstantiate(&captured.emplace_back(), graph, 0));
    ok(cudaGraphDestroy(graph));
  }
  w.barrier();
  const int times = cases(1000);
  for (int i = 0; i < times && !::testing::Test::HasFailure(); ++i) {
    const std::size_t at = random() % worlds_cases.size();
    const bool replays = graphs && random() % 2 == 0;
    if (stalls() % 4 == 0) stall(s, static_cast<std::int64_t>(stalls() % 200));
    if (replays) {
      ok(cudaGraphLaunch(captured[at], s.get()));
    } else {
      worlds_cases[at].launch(s);
    }
    if (i % 7 != 0 && i + 1 < times) continue;
    ASSERT_TRUE(s.done());
    w.check();
    EXPECT_TRUE(worlds_cases[at].result(s) == worlds_cases[at].first)
        << "run " << i << " of " << worlds_cases[at].rows << " rows, "
        << (replays ? "replayed" : "launched");
  }
  EXPECT_TRUE(s.done());
  for (const cudaGraphExec_t graph : captured) ok(cudaGraphExecDestroy(graph));
  w.barrier();
}

void check_gemm(const operator_entry& entry, const gemm_problem& most) {
  std::vector<pattern> own;
  for (const pattern how : untax::all_patterns)
    if (how != pattern::bulk_library && how != pattern::automatic) own.push_back(how);
  const auto rows = [&](std::mt19937_64& /*random*/) {
    return std::vector<std::int64_t>{most.m,     most.m * 3 / 4, most.m / 2, most.m / 2 - 77,
                                     most.m / 3, most.m / 4,     100,        1};
  };
  each_pattern(own, entry, most, rows,
               [&](world& w, untax::runnable& op, auto& inputs, auto& random, const stream& s) {
                 std::deque<rows_case> cases;
                 for (const row_inputs& now : inputs) {
                   now.launch(op, s);
                   EXPECT_TRUE(s.done());
                   w.check();
                   now.expect_right(s);
                   cases.push_back({now.result().rows,
                                    [&](const stream& on) { now.launch(op, on); },
                                    [&](const stream& on) { return bits_of(now.result(), on); },
                                    {}});
                 }
                 run_in_any_order(w, cases, random(), sharing() == 1, s);
               });
}

gemm_problem large() {
  return {.m = 6144, .n = 1024, .k = 1024, .type = dtype::bf16, .partials = dtype::bf16};
}

TEST(gpu_shared_rooms, of_all_gather_gemm_are_handed_over) {
  NEEDS_GPUS(1);
  gemm_problem p = large();
  p.gather = gather_axis::rows;
  check_gemm(untax::all_gather_gemm_entry(), p);
  p.gather = gather_axis::k;
  check_gemm(untax::all_gather_gemm_entry(), p);
}

TEST(gpu_shared_rooms, of_sums_are_handed_over) {
  NEEDS_GPUS(1);
  gemm_problem p = large();
  for (const dtype partials : {dtype::bf16, dtype::f32}) {
    p.partials = partials;
    check_gemm(untax::gemm_reduce_scatter_entry(), p);
    check_gemm(untax::gemm_all_reduce_entry(), p);
  }
}

TEST(gpu_shared_rooms, of_a_norm_are_handed_over) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        constexpr std::int64_t most = 3072;
        constexpr std::int64_t hidden = 2048;
        SCOPED_TRACE(fmt::format("seed {}, rank {}", seed, w.rank()));
        const stream s;
        untax::all_reduce_norm op(w, {.tokens = most, .hidden = hidden, .type = dtype::bf16},
                                  {.varying_rows = true});
        const std::size_t bytes = most * hidden * 2;
        const scratch in(bytes), residual(bytes), weight(hidden * 2), x(bytes), out(bytes);
        std::mt19937_64 random(seed + 100 + static_cast<std::uint64_t>(w.rank()));
        for (const scratch* memory : {&in, &residual, &weight}) {
          bits some(memory == &weight ? hidden : most * hidden);
          for (std::uint16_t& b : some)  // +-1 to 2
            b = static_cast<std::uint16_t>(0x3f80U | (random() & 0x807fU));
          copy(static_cast<std::uint16_t*>(memory->data()), some.data(), some.size(), s);
        }
        std::deque<rows_case> cases;
        for (const std::int64_t rows : {most, most / 2, most / 2 - 5, most / 3, std::int64_t{700},
                                        std::int64_t{65}, std::int64_t{1}}) {
          const matrix result(out.data(), dtype::bf16, rows, hidden);
          cases.push_back({rows,
                           [&, rows, result](const stream& on) {
                             untax::gpu::fill_nan(result.data, result.span_bytes(), on.get());
                             op.run({{in.data(), dtype::bf16, rows, hidden},
                                     {residual.data(), dtype::bf16, rows, hidden},
                                     weight.data()},
                                    {x.data(), out.data()}, on.get());
                           },
                           [result](const stream& on) { return bits_of(result, on); },
                           {}});
        }
        w.barrier();
        run_in_any_order(w, cases, seed, sharing() == 1, s);
      },
      roomy_world());
}

TEST(gpu_shared_rooms, of_an_all_reduce_are_handed_over) {
  NEEDS_GPUS(1);
  const std::uint64_t seed = std::random_device{}();
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        constexpr std::int64_t most = std::int64_t{6} << 20;
        SCOPED_TRACE(fmt::format("seed {}, rank {}", seed, w.rank()));
        const stream s;
        untax::all_reduce op(w, {.count = most, .type = dtype::bf16}, {.varying_count = true});
        const scratch in(most * 2), out(most * 2);
        const bits ones(most, static_cast<std::uint16_t>(0x3f80U + w.rank()));
        copy(static_cast<std::uint16_t*>(in.data()), ones.data(), ones.size(), s);
        std::deque<rows_case> cases;
        // Packets of both kinds, with memory of their own and not, and rooms in turn.
        for (const std::int64_t count :
             {most, most / 2, most / 3, std::int64_t{1} << 20, std::int64_t{700000},
              std::int64_t{500000}, std::int64_t{1000}, std::int64_t{1}}) {
          const matrix result(out.data(), dtype::bf16, 1, count);
          cases.push_back({count,
                           [&, count, result](const stream& on) {
                             untax::gpu::fill_nan(result.data, result.span_bytes(), on.get());
                             op.run({in.data(), dtype::bf16, count},
                                    {out.data(), dtype::bf16, count}, on.get());
                           },
                           [result](const stream& on) { return bits_of(result, on); },
                           {}});
        }
        w.barrier();
        run_in_any_order(w, cases, seed, sharing() == 1, s);
        for (const rows_case& entry : cases)
          EXPECT_EQ(std::count(entry.first.begin(), entry.first.end(), entry.first.front()),
                    entry.rows);
      },
      roomy_world());
}

}  // namespace
