// On which stream runs of operators take place: one that is passed, the default one, or none.
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/collectives.hpp>
#include <untax/world/launch.hpp>

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
using untax::errc;

TEST(gpu_streams, a_run_without_a_stream_is_complete_when_it_returns) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  untax::run_gpus(
      gpus(),
      [](world& w) {
        for (const operator_entry& entry :
             {untax::all_gather_gemm_entry(), untax::gemm_all_scatter_entry()}) {
          const gemm_problem p{.m = 100, .n = 256, .k = 512, .type = dtype::f16};
          workload load(w, entry, p, {.how = pattern::bulk_library}, 3);
          load.run();
          EXPECT_LE(load.relative_error(), tolerance_of(entry, p)) << entry.name;
        }
      },
      roomy_world());
}

/// Inputs that the default stream has still to write when a run begins. Where ranks share a GPU
/// that stream is no place to run on.
TEST(gpu_streams, runs_begin_behind_the_default_stream) {
  NEEDS_GPUS(1);
  untax::run_gpus(
      gpus(),
      [](world& w) {
        for (const operator_entry& entry :
             {untax::all_gather_gemm_entry(), untax::gemm_all_scatter_entry(),
              untax::gemm_reduce_scatter_entry(), untax::gemm_all_reduce_entry()}) {
          const gemm_problem p{.m = 100, .n = 256, .k = 512, .type = dtype::f16};
          workload load(w, entry, p, {.how = pattern::fused_sequential}, 3);
          load.run();
          w.barrier();
          hold(cudaStreamLegacy, 20ms);
          load.refresh_on(cudaStreamLegacy, 4);
          load.run();
          EXPECT_LE(load.relative_error(), tolerance_of(entry, p))
              << entry.name << " without a stream";
          w.barrier();
          if (sharing() > 1) {
            expect_error(error_of([&] { load.launch(cudaStreamLegacy); }), errc::unsupported,
                         {fmt::format("rank {}: runs on the default stream", w.rank()),
                          "GPUs of their own"});
            continue;
          }
          hold(cudaStreamLegacy, 20ms);
          load.refresh_on(cudaStreamLegacy, 5);
          load.launch(cudaStreamLegacy);
          EXPECT_EQ(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady) << "it only launches";
          ok(cudaStreamSynchronize(cudaStreamLegacy));
          w.check();
          EXPECT_LE(load.relative_error(), tolerance_of(entry, p))
              << entry.name << " on that stream";
        }
      },
      roomy_world());
}

TEST(gpu_streams, a_collective_without_a_stream_is_complete_when_it_returns) {
  NEEDS_GPUS(2);
  untax::run_gpus(
      gpus(),
      [](world& w) {
        const stream s;
        const auto values_here = w.allocate<float>(1000, "values");
        const auto sum = w.allocate<float>(1000, "sum");
        untax::all_reduce op(w, {.count = 1000, .type = dtype::f32});
        const std::vector<float> mine(1000, static_cast<float>(w.rank() + 1));
        copy(values_here.local(), mine.data(), mine.size(), s);
        op.run(untax::const_array_view(values_here.local(), 1000),
               untax::array_view(sum.local(), 1000));
        const auto right = static_cast<float>(w.size() * (w.size() + 1) / 2);
        EXPECT_EQ(values(sum.local(), 1000, s), std::vector<float>(1000, right));
      },
      roomy_world());
}

TEST(gpu_streams, collectives_begin_behind_the_default_stream) {
  NEEDS_GPUS(2);
  untax::run_gpus(
      gpus(),
      [](world& w) {
        const stream s;
        constexpr std::size_t count = 1000;
        const auto values_here = w.allocate<float>(count, "values");
        const auto in = w.allocate<float>(count, "in");
        const auto sum = w.allocate<float>(count, "sum");
        untax::all_reduce op(w, {.count = count, .type = dtype::f32});
        const std::vector<float> mine(count, static_cast<float>(w.rank() + 1));
        const std::vector<float> zeros(count);
        copy(values_here.local(), mine.data(), mine.size(), s);
        const std::vector<float> right(count, static_cast<float>(w.size() * (w.size() + 1) / 2));
        const auto run = [&](untax::stream_ref on) {
          copy(in.local(), zeros.data(), zeros.size(), s);
          w.barrier();
          hold(cudaStreamLegacy, 20ms);
          ok(cudaMemcpyAsync(in.local(), values_here.local(), count * sizeof(float),
                             cudaMemcpyDeviceToDevice, cudaStreamLegacy));
          op.run(untax::const_array_view(in.local(), count), untax::array_view(sum.local(), count),
                 on);
        };
        run({});
        EXPECT_EQ(values(sum.local(), count, s), right);
        if (sharing() > 1)
          return expect_error(error_of([&] { run(cudaStreamLegacy); }), errc::unsupported,
                              {"default stream"});
        run(cudaStreamLegacy);
        ok(cudaStreamSynchronize(cudaStreamLegacy));
        w.check();
        EXPECT_EQ(values(sum.local(), count, s), right);
      },
      roomy_world());
}

/// An all_reduce of ones in two worlds, each on a stream of its own.
void run_in_two_worlds(world& first, world& second) {
  constexpr std::size_t count = 2000;
  const std::vector<float> ones(count, 1);
  const stream streams[2];
  world* const worlds[2] = {&first, &second};
  std::vector<std::unique_ptr<untax::all_reduce>> ops;
  std::vector<float*> memory;
  for (world* w : worlds) {
    ops.push_back(std::make_unique<untax::all_reduce>(
        *w, untax::all_reduce_problem{.count = count, .type = dtype::f32}));
    memory.push_back(w->allocate<float>(2 * count, "in and out").local());
    copy(memory.back(), ones.data(), count, streams[0]);
    w->barrier();
  }
  for (int turn = 0; turn < 1000; ++turn) {
    for (const int i : {first.rank(), 1 - first.rank()}) {
      float* const at = memory[static_cast<std::size_t>(i)];
      ops[static_cast<std::size_t>(i)]->run(untax::const_array_view(at, count),
                                            untax::array_view(at + count, count), streams[i].get());
    }
  }
  for (const int i : {0, 1}) {
    EXPECT_TRUE(streams[i].done());
    worlds[i]->check();
    EXPECT_EQ(values(memory[static_cast<std::size_t>(i)] + count, count, streams[i]),
              std::vector<float>(count, 2));
    ops[static_cast<std::size_t>(i)].reset();
  }
}

/// Nothing keeps worlds in order: small kernels, which leave each other room, may be launched in
/// another order at each rank.
TEST(gpu_streams, of_two_worlds_run_in_any_order_if_both_fit_on_the_gpu) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  std::vector<world> first = world::local_gpus(2, gpu_world());
  std::vector<world> second = world::local_gpus(2, gpu_world());
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        first[rank].use_device();
        run_in_two_worlds(first[rank], second[rank]);
      } catch (const std::exception& e) {
        errors[rank] = e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
