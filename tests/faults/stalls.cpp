// Ranks that stall in the middle of an operator, for every operator and pattern on thread worlds.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include <untax/world/launch.hpp>

#include "ops/all_gather_gemm/spec.hpp"
#include "ops/common/registry.hpp"
#include "trial.hpp"

namespace untax::testing {
namespace {

fault stall_at(const fault_site& site, std::chrono::milliseconds duration) {
  fault f = fault::at(fault_kind::stall, site);
  f.duration = duration;
  return f;
}

TEST(stalls, a_short_stall_of_an_operator_changes_nothing) {
  for_sampled_sites("stall", 4, false, [](const faulty_case& c, const fault_site& site) {
    expect_right(c, stall_at(site, std::chrono::milliseconds(8)));
  });
}

TEST(stalls, a_stall_beyond_the_limit_is_harmless_or_named) {
  std::atomic<int> failed = 0;
  for_sampled_sites("stall beyond the limit", 1, false,
                    [&](const faulty_case& c, const fault_site& site) {
                      const fault f = stall_at(site, short_limit * 5 / 2);
                      failed += expect_right_or_named(c, f).failed() ? 1 : 0;
                    });
  EXPECT_GT(failed, 0) << "somebody waits for most sites";
}

/// Rank 1 never runs. Rank 0 multiplies its own rows, and stores nothing that needs the others'.
TEST(stalls, no_step_runs_after_a_failed_wait) {
  constexpr float poison = 77;
  world_options limits;
  limits.wait_limit = short_limit;
  std::atomic<bool> over = false;
  constexpr std::int64_t own = 200;
  std::vector<float> c(2 * own * 24, poison);
  EXPECT_THROW(run_threads(
                   2,
                   [&](untax::world& w) {
                     const auto op = all_gather_gemm_entry().make(
                         w, {.m = 2 * own, .n = 24, .k = 16}, {.how = pattern::fused_sequential});
                     while (w.rank() == 1 && !over)
                       std::this_thread::sleep_for(std::chrono::milliseconds(5));
                     if (w.rank() == 1) return;
                     const std::vector<float> ones(own * 16, 1.0F);
                     try {
                       op->run({ones.data(), dtype::f32, own, 16},
                               {ones.data(), dtype::f32, 24, 16},
                               {c.data(), dtype::f32, 2 * own, 24}, {});
                     } catch (const error& e) {
                       EXPECT_EQ(e.code(), errc::timeout) << e.what();
                       over = true;
                       throw;
                     }
                     over = true;
                   },
                   limits),
               error);
  EXPECT_EQ(std::count(c.begin(), c.begin() + own * 24, 16.0F), own * 24);
  EXPECT_EQ(std::count(c.begin() + own * 24, c.end(), poison), own * 24);
}

std::ptrdiff_t entries(const char* directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

/// The number of threads, once it has not changed for a while: one that was joined is listed until
/// the system has buried it.
std::ptrdiff_t settled_threads() {
  std::ptrdiff_t last = entries("/proc/self/task");
  for (int same = 0; same < 20; ++same) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::ptrdiff_t now = entries("/proc/self/task");
    if (now != std::exchange(last, now)) same = 0;
  }
  return last;
}

TEST(stalls, no_thread_and_no_descriptor_is_left) {
  const std::vector<faulty_case> cases = all_cases({2});
  const auto one_trial = [&] {
    fault f = fault::parse("drop:rank=1");
    EXPECT_TRUE(run_trial(cases.back(), f, short_limit, 3).struck());
  };
  one_trial();  // what is made once and kept, such as a sanitizer's own thread, is there after it
  const auto threads = settled_threads();
  const auto descriptors = entries("/proc/self/fd");
  for (int i = 0; i < 3; ++i) one_trial();
  EXPECT_EQ(settled_threads(), threads);
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
}

}  // namespace
}  // namespace untax::testing
