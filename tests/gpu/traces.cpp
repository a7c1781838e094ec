// Traces of kernels: parts add up to the time of a run, and a rank that comes late, a launch that
// is held up and a signal that is long under way are named. Takes a build with UNTAX_KERNEL_TRACE;
// ranks may share a GPU.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <untax/trace/account.hpp>
#include <untax/trace/json.hpp>
#include <untax/trace/session.hpp>
#include <untax/world/launch.hpp>

#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm_alone/gemm.hpp"
#include "engines/gpu/launch/operator_trace.hpp"
#include "engines/gpu/trace/launch_trace.hpp"
#include "gemm_check.cuh"
#include "gpus.hpp"
#include "operator_runs.hpp"

namespace {

using namespace gpu_test;
using untax::errc;
using untax::run_account;
using untax::trace_breakdown;
using untax::trace_part;
using untax::trace_record;

constexpr std::int64_t epochs = 5;
constexpr std::int64_t struck_epoch = 4;
constexpr auto late = 3ms;

/// Skips the test, aloud, where kernels record nothing.
#define NEEDS_KERNEL_TRACE()           \
  if (!untax::gpu::kernels_are_traced) \
  GTEST_SKIP() << "kernels of this build record nothing: build with -DUNTAX_KERNEL_TRACE=ON"

struct traced_case {
  std::string name;
  pattern how;
  gather_axis gather = gather_axis::rows;
};
const std::vector<traced_case>& traced_cases() {
  static const std::vector<traced_case> cases = {
      {"all_gather_gemm", pattern::bulk_synchronous,
       gather_axis::k},  // by rows it consists of two operators
      {"all_gather_gemm", pattern::producer_consumer},
      {"all_gather_gemm", pattern::fused_specialized},
      {"gemm_all_scatter", pattern::producer_consumer},
      {"gemm_all_scatter", pattern::fused_sequential},
      {"gemm_reduce_scatter", pattern::fused_specialized},
      {"gemm_all_reduce", pattern::fused_sequential}};
  return cases;
}

/// Some runs behind each other; `before` comes in front of each rank's call. Empty where the
/// operator does not have the pattern.
trace_record traced(
    const traced_case& c, int ranks,
    const std::function<void(int rank, std::int64_t epoch, const stream& s)>& before,
    untax::gpu::signal_tap* tap_of_rank_1 = nullptr) {
  untax::start_trace({});
  untax::run_gpus(
      ranks,
      [&](world& w) {
        const operator_entry& entry = untax::operator_named(c.name);
        const gemm_problem p{
            .m = 512, .n = 2048, .k = 1024, .type = dtype::bf16, .gather = c.gather};
        const stream s;
        try {
          std::optional<untax::gpu::signal_taps> taps;
          if (w.rank() == 1 && tap_of_rank_1 != nullptr) taps.emplace(*tap_of_rank_1);
          workload load(w, entry, p, {.how = c.how}, 1);
          for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
            w.barrier();
            before(w.rank(), epoch, s);
            load.launch(s.get());
            EXPECT_TRUE(s.done());
          }
          w.check();
          EXPECT_LE(load.relative_error(), tolerance_of(entry, p));
        } catch (const untax::error& e) {
          if (e.code() != errc::unsupported) throw;
        }
      },
      roomy_world());
  return untax::stop_trace();
}

void expect_whole(const trace_record& record, int ranks) {
  EXPECT_EQ(record.operators.size(), static_cast<std::size_t>(ranks));
  const auto accounts = untax::accounts_of(record);
  ASSERT_EQ(accounts.size(), 1U);
  EXPECT_GE(accounts[0].runs.size(), 1U) << record.summary();
  for (const run_account& run : accounts[0].runs) {
    EXPECT_NEAR(run.path.total(), run.wall(), 0.01 * run.wall());
    for (const trace_breakdown& rank : run.ranks)
      EXPECT_NEAR(rank.total(), run.wall(), 0.01 * run.wall());
  }
  EXPECT_GT(accounts[0].ranks.at(0)[trace_part::compute], 0);
  const auto read = untax::accounts_of(untax::trace_from_json(untax::to_trace_json(record)));
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].ranks, accounts[0].ranks);
}

TEST(gpu_traces, parts_add_up_to_the_time_of_a_run) {
  NEEDS_GPUS(1);
  NEEDS_KERNEL_TRACE();
  for (const int ranks : {1, 2, 4}) {
    if (ranks > gpus()) continue;
    for (const traced_case& c : traced_cases()) {
      SCOPED_TRACE(c.name + ", " + std::string(name_of(c.how)) + ", " + std::to_string(ranks));
      const trace_record record = traced(c, ranks, [](int, std::int64_t, const stream&) {});
      if (ranks > 1 && !record.operators.empty()) expect_whole(record, ranks);
    }
  }
}

/// The longest piece of the critical path of the run that was struck is this part, and lasts as
/// long as the fault; its `rank` is rank 1.
void expect_named(const trace_record& record, trace_part part, int untax::path_piece::*rank) {
  const auto accounts = untax::accounts_of(record);
  ASSERT_EQ(accounts.size(), 1U);
  const auto& runs = accounts[0].runs;
  const auto struck = std::ranges::find(runs, struck_epoch, &run_account::epoch);
  ASSERT_NE(struck, runs.end());
  const auto worst = std::ranges::max(struck->pieces, {},
                                      [](const untax::path_piece& p) { return p.end - p.begin; });
  EXPECT_EQ(worst.part, part) << name_of(worst.part);
  EXPECT_EQ(worst.*rank, 1);
  EXPECT_GE(1e-9 * static_cast<double>(worst.end - worst.begin),
            0.9 * std::chrono::duration<double>(late).count());
  EXPECT_NEAR(struck->path.total(), struck->wall(), 0.01 * struck->wall());
}

/// With 2 and with 4 ranks, in all ways that operators have.
void each_case(const std::function<void(const traced_case&, int ranks)>& test) {
  for (const int ranks : {2, 4}) {
    if (ranks > gpus()) continue;
    for (const traced_case& c : traced_cases()) {
      SCOPED_TRACE(c.name + ", " + std::string(name_of(c.how)) + ", " + std::to_string(ranks));
      test(c, ranks);
    }
  }
}

TEST(gpu_traces, a_rank_that_comes_late_is_named) {
  NEEDS_GPUS(2);
  NEEDS_KERNEL_TRACE();
  each_case([](const traced_case& c, int ranks) {
    const trace_record record = traced(c, ranks, [](int rank, std::int64_t epoch, const stream&) {
      if (rank == 1 && epoch == struck_epoch) std::this_thread::sleep_for(late);
    });
    if (!record.operators.empty())
      expect_named(record, trace_part::entry, &untax::path_piece::rank);
  });
}

TEST(gpu_traces, a_launch_that_is_held_up_is_named) {
  NEEDS_GPUS(2);
  NEEDS_KERNEL_TRACE();
  each_case([](const traced_case& c, int ranks) {
    const trace_record record = traced(c, ranks, [](int rank, std::int64_t epoch, const stream& s) {
      if (rank == 1 && epoch == struck_epoch) stall(s, std::chrono::microseconds(late).count());
    });
    if (!record.operators.empty())
      expect_named(record, trace_part::launch, &untax::path_piece::rank);
  });
}

/// Takes a signal of rank 1 in the run that is struck, and raises it later, by a copy.
class slow_link {
 public:
  slow_link() {
    void* graph = nullptr;
    ok(cudaHostAlloc(&graph, sizeof(memory), cudaHostAllocPortable));
    memory_ = new (graph) memory;
  }
  slow_link(const slow_link&) = delete;
  slow_link& operator=(const slow_link&) = delete;
  ~slow_link() {
    stop();
    (void)cudaFreeHost(memory_);
  }

  [[nodiscard]] untax::gpu::signal_tap& tap() const { return memory_->tap; }
  /// By rank 1, before it runs what is struck, on its device.
  void arm() {
    int device = 0;
    ok(cudaGetDevice(&device));
    std::atomic_ref(memory_->tap.armed).store(1);
    ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    link_ = std::thread([this, device] {
      ok(cudaSetDevice(device));
      // Runs end within this time, with errors where the signal never comes.
      for (int looks = 0; looks < 200'000 && !ended_ && !was_used(); ++looks)
        std::this_thread::sleep_for(100us);
      if (was_used()) raise();
    });
  }
  /// No signal comes any more.
  void stop() {
    ended_ = true;
    if (!link_.joinable()) return;
    link_.join();
    (void)cudaStreamDestroy(stream_);
  }
  /// Whether there was a signal.
  [[nodiscard]] bool was_used() const { return std::atomic_ref(memory_->tap.counter).load() != 0; }

 private:
  struct memory {
    untax::gpu::signal_tap tap;
    std::uint64_t value = 0;
  };

  void raise() const {
    std::this_thread::sleep_for(late);
    memory_->value = memory_->tap.value;
    ok(cudaMemcpyAsync(reinterpret_cast<void*>(memory_->tap.counter), &memory_->value,
                       sizeof(std::uint64_t), cudaMemcpyDefault, stream_));
    ok(cudaStreamSynchronize(stream_));
  }

  memory* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::thread link_;
  std::atomic<bool> ended_ = false;
};

TEST(gpu_traces, a_slow_link_is_named) {
  NEEDS_GPUS(2);
  NEEDS_KERNEL_TRACE();
  int used = 0;
  each_case([&](const traced_case& c, int ranks) {
    // Words of sums carry their own signal, so no wait is recorded for them.
    if (!c.name.ends_with("gemm") && c.name != "gemm_all_scatter") return;
    slow_link link;
    const trace_record record = traced(
        c, ranks,
        [&](int rank, std::int64_t epoch, const stream&) {
          if (rank == 1 && epoch == struck_epoch) link.arm();
        },
        &link.tap());
    link.stop();
    if (record.operators.empty() || !link.was_used()) return;
    ++used;
    expect_named(record, trace_part::in_flight, &untax::path_piece::peer);
  });
  EXPECT_GE(used, 3);
}

/// By kernels of every size of cluster: their producers are one thread.
TEST(gpu_traces, a_gemm_alone_is_recorded) {
  NEEDS_GPUS(1);
  NEEDS_KERNEL_TRACE();
  const stream on;
  const untax::gpu::gemm_shape shape{520, 1032, 2048, untax::dtype::bf16};
  gemm_data data(shape.m, shape.n, shape.k, shape.type);
  data.fill(1, on.get());
  std::set<int> clusters;
  for (const untax::gpu::gemm_plan& plan :
       untax::gpu::plans_by_model(shape, untax::gpu::gpu_here())) {
    SCOPED_TRACE(plan.text());
    clusters.insert(cluster_blocks(plan.config));
    untax::start_trace({.path = {}, .events_per_worker = 64});
    {
      const untax::gpu::gemm op(shape, plan);
      for (int run = 0; run < 2; ++run) {
        data.poison(on.get());
        op.run(data.a(), data.b(), data.c(), on.get());
        EXPECT_EQ(data.findings(on.get()), "");
      }
    }
    const trace_record record = untax::stop_trace();
    ASSERT_EQ(record.operators.size(), 1U);
    EXPECT_EQ(std::ranges::count(record.operators.front().calls, untax::trace_kind::run,
                                 &untax::trace_span::kind),
              2);
  }
  EXPECT_GE(clusters.size(), 3U);
}

TEST(gpu_traces, are_refused_by_builds_without_kernel_traces) {
  NEEDS_GPUS(1);
  if (untax::gpu::kernels_are_traced) GTEST_SKIP() << "kernels of this build record";
  untax::start_trace({});
  const untax::error refused = error_of([] {
    untax::run_gpus(
        gpus(),
        [](world& w) {
          const gemm_problem p{.m = 64, .n = 256, .k = 256, .type = dtype::bf16};
          workload load(w, untax::operator_named("all_gather_gemm"), p,
                        {.how = pattern::fused_specialized}, 1);
        },
        roomy_world());
  });
  expect_error(refused, errc::unsupported, {"build with -DUNTAX_KERNEL_TRACE=ON"});
  (void)untax::stop_trace();
}

}  // namespace
