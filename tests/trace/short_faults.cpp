// Faults of 300 us are named, too, where nothing else takes so long: where a machine is busy, it is
// itself what a trace would have to name. So only trials count whose other runs were quick.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <untax/trace/account.hpp>

#include "support.hpp"

namespace untax::testing {
namespace {

constexpr std::chrono::microseconds fault_time{300};
constexpr std::uint64_t runs = 8;
constexpr int trials = 60;
constexpr int enough = 15;

/// Rank 1's first signal of the run that is struck is under way for so long.
class slow_signal final : public fault_tap {
 public:
  ~slow_signal() override { join(); }
  void signal(const fault_site& site, const room& /*target*/,
              const std::function<void()>& deliver) override {
    const bool meant = site.rank == 1 && site.epoch == struck_epoch;
    const std::scoped_lock lock(mutex_);
    if (!meant || link_.joinable()) return deliver();
    link_ = std::thread([deliver] {
      std::this_thread::sleep_for(fault_time);
      deliver();
    });
  }
  void settle() override { join(); }

 private:
  void join() {
    const std::scoped_lock lock(mutex_);
    if (link_.joinable()) link_.join();
  }

  std::mutex mutex_;
  std::thread link_;
};

/// Whether all runs but the one that is struck took less than half of a fault.
bool is_quiet(const trace_record& record) {
  const auto accounts = accounts_of(record);
  return std::ranges::all_of(accounts.at(0).runs, [](const run_account& run) {
    return run.epoch == static_cast<std::int64_t>(struck_epoch) ||
           run.wall() < 0.5e-6 * static_cast<double>(fault_time.count());
  });
}

/// One worker a rank, so that they all have a core each where there are two.
operator_options lean_way() {
  operator_options options;
  options.how = pattern::fused_sequential;
  options.workers = 1;
  return options;
}

/// Calls `trial`, which gives a record with a fault in it, and looks whether it is named.
void expect_named(trace_part part, int path_piece::*rank,
                  const std::function<trace_record()>& trial) {
  int quiet = 0;
  int named = 0;
  for (int i = 0; i < trials; ++i) {
    const trace_record record = trial();
    if (!is_quiet(record)) continue;
    ++quiet;
    const diagnosis d = diagnosed(record);
    if (d.worst.part == part && d.worst.*rank == 1) ++named;
  }
  printf("%d of %d trials were quiet, and %d of them named rightly\n", quiet, trials, named);
  if (quiet < enough) GTEST_SKIP() << "the machine is busy";
  EXPECT_GT(2 * named, quiet);
}

TEST(short_fault, a_late_rank_is_named) {
  expect_named(trace_part::entry, &path_piece::rank, [] {
    return traced_runs("all_gather_gemm", lean_way(), 2, runs, [](int rank, std::uint64_t epoch) {
      if (rank == 1 && epoch == struck_epoch) std::this_thread::sleep_for(fault_time);
    });
  });
}

TEST(short_fault, a_late_launch_is_named) {
  expect_named(trace_part::launch, &path_piece::rank, [] {
    operator_options options = lean_way();
    options.faults = std::make_shared<late_launch>(fault_time);
    return traced_runs("all_gather_gemm", options, 2, runs);
  });
}

TEST(short_fault, a_slow_link_is_named) {
  expect_named(trace_part::in_flight, &path_piece::peer, [] {
    operator_options options = lean_way();
    options.faults = std::make_shared<slow_signal>();
    return traced_runs("all_gather_gemm", options, 2, runs);
  });
}

}  // namespace
}  // namespace untax::testing
