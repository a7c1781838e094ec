#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ops/common/epochs_test.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace untax::testing {

/// One way to run one problem.
struct operator_case {
  gemm_problem problem;
  operator_options options;
  int world = 1;
  int epochs = 3;
  std::uint64_t seed = 1;

  [[nodiscard]] std::string describe() const {
    return fmt::format(
        "W {} m {} n {} k {} {} gather {} partials {} {} {} workers {} senders {} phases {} tile "
        "{}x{} "
        "panel {} seed {}",
        world, problem.m, problem.n, problem.k, name_of(problem.type), name_of(problem.gather),
        name_of(partials_type(problem)), name_of(options.how), name_of(options.move),
        options.workers, options.senders, options.phases, options.tile_m, options.tile_n,
        options.panel_k, seed);
  }
};

inline world_options options_for(const operator_case& c) {
  world_options options;
  options.heap_bytes = heap_for(c.problem, c.world, c.options.phases);
  options.wait_limit = std::chrono::seconds(20);
  return options;
}

/// Every rank checks its own result. Returns the bits of the last epoch, by rank.
inline std::vector<std::vector<std::byte>> check_case(const operator_entry& entry,
                                                      const operator_case& c) {
  SCOPED_TRACE(entry.name + ": " + c.describe());
  return check_epochs(c, options_for(c), tolerance_of(entry, c.problem),
                      [&](world& w) { return workload(w, entry, c.problem, c.options, c.seed); });
}

/// A random case: odd shapes, every pattern, tiles smaller than the problem.
inline operator_case random_case(const operator_entry& entry, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  operator_case c;
  c.seed = seed;
  c.world = static_cast<int>(between(1, 8));
  c.problem = {.m = between(1, 90), .n = between(1, 90), .k = between(1, 90)};
  c.problem.type = static_cast<dtype>(between(0, 2));
  if (entry.gathers) c.problem.gather = static_cast<gather_axis>(between(0, 1));
  if (entry.sums_to && between(0, 1) == 1) c.problem.partials = dtype::f32;
  c.options.how = host_patterns[static_cast<std::size_t>(between(0, host_patterns.size() - 1))];
  if (entry.gathers) c.options.move = static_cast<direction>(between(0, 1));
  c.options.launch = static_cast<launch_mode>(between(0, 1));
  c.options.workers = static_cast<int>(between(1, 3));
  c.options.senders = static_cast<int>(between(1, 2));
  c.options.tile_m = between(1, 40);
  c.options.tile_n = between(1, 40);
  c.options.panel_k = between(1, 40);
  if (entry.phases) c.options.phases = static_cast<int>(between(0, 2));
  return c;
}

inline void check_random_cases(const operator_entry& entry, std::uint64_t first_seed, int count) {
  for (int i = 0; i < count; ++i) {
    check_case(entry, random_case(entry, first_seed + static_cast<std::uint64_t>(i)));
    if (::testing::Test::HasFailure()) return;
  }
}

/// Every pattern, direction and world size on the shapes that people try first, with the tiles
/// untax chooses.
inline void check_all_patterns(const operator_entry& entry, std::int64_t m, std::int64_t n,
                               std::int64_t k, dtype type) {
  for (const pattern how : host_patterns) {
    for (int world = 1; world <= 8; ++world) {
      for (const auto gather : {gather_axis::rows, gather_axis::k}) {
        if (gather == gather_axis::k && !entry.gathers) continue;
        operator_case c;
        c.world = world;
        c.problem = {.m = m, .n = n, .k = k, .type = type, .gather = gather};
        c.options.how = how;
        if (entry.gathers && world % 2 == 0) c.options.move = direction::pull;
        if (entry.phases) c.options.phases = 1 + world % 2;
        c.seed = static_cast<std::uint64_t>(m * 7 + world);
        check_case(entry, c);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace untax::testing
