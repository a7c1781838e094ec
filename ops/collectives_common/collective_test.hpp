#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include <untax/world/launch.hpp>

#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/epochs_test.hpp"

namespace untax::testing {

/// One way to run one problem.
struct collective_case {
  collective_problem problem;
  collective_options options;
  int world = 1;
  int epochs = 5;
  std::uint64_t seed = 1;
};

inline std::string describe(const collective_entry& entry, const collective_case& c) {
  return fmt::format(
      "{}, W {}, {}{}{}, phases {}, workers {}, chunk bytes {}, depth {}, keepers {}, seed {}",
      untax::describe(entry, c.problem), c.world, name_of(c.options.how),
      c.options.direct ? ", direct" : "",
      c.options.inputs == input_path::rooms ? ", inputs through rooms" : "", c.options.phases,
      c.options.workers, c.options.chunk_bytes, c.options.depth, c.options.keepers, c.seed);
}

/// Every rank compares its
/// result with fp64 and, bit for bit, with a combination in fp32 in rank order. So results are the
/// same in every run and, if all ranks have the same result, at every rank.
inline void check_case(const collective_entry& entry, const collective_case& c) {
  SCOPED_TRACE(describe(entry, c));
  const trial_subject subject = subject_of(entry, c.problem, c.options);
  world_options settings;
  settings.heap_bytes = subject.heap_bytes(c.world);
  (void)check_epochs(
      c, settings, subject.tolerance,
      [&](world& w) { return collective_workload(w, entry, c.problem, c.options, c.seed); },
      [](collective_workload& load, int epoch) {
        load.run();
        EXPECT_EQ(load.wrong_bits(), 0) << "epoch " << epoch;
      });
}

/// A random case: odd sizes, every pattern, type and reduction, chunks smaller than the problem.
inline collective_case random_case(const collective_entry& entry, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  collective_case c;
  c.seed = seed;
  c.world = static_cast<int>(between(1, 9));
  c.problem.count = between(0, 3) == 0 ? between(0, 2000) : between(0, 40);
  c.problem.type = static_cast<dtype>(between(0, 2));
  c.problem.how = static_cast<reduction>(between(0, 2));
  c.problem.root = static_cast<int>(between(0, c.world - 1));
  c.problem.uneven = entry.has_uneven && between(0, 1) == 1;
  constexpr pattern patterns[] = {pattern::automatic, pattern::bulk_synchronous,
                                  pattern::fused_sequential, pattern::fused_specialized};
  c.options.how = patterns[between(0, 3)];
  c.options.phases = static_cast<int>(between(0, entry.has_phases ? 2 : 1));
  c.options.launch = static_cast<launch_mode>(between(0, 1));
  c.options.workers = static_cast<int>(between(0, 3));
  c.options.chunk_bytes = between(0, 1) == 0 ? 0 : between(1, 200);
  c.options.depth = static_cast<int>(between(0, 5));
  c.options.direct = between(0, 2) == 0;
  c.options.inputs = static_cast<input_path>(between(0, 2));
  c.options.keepers = static_cast<int>(between(0, 2));
  c.options.serves = static_cast<int>(between(0, 3));
  if (c.options.direct) c.options.how = pattern::fused_sequential;
  return c;
}

inline void check_random_cases(const collective_entry& entry, std::uint64_t first_seed, int count) {
  for (int i = 0; i < count; ++i) {
    check_case(entry, random_case(entry, first_seed + static_cast<std::uint64_t>(i)));
    if (::testing::Test::HasFailure()) return;
  }
}

/// Every pattern and type, with a size that takes several chunks and blocks of vectors, split as
/// untax chooses.
inline void check_large_cases(const collective_entry& entry) {
  for (const pattern how : collective_patterns) {
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
      for (const int phases : {1, 2}) {
        if (phases == 2 && !entry.has_phases) continue;
        collective_case c;
        c.world = 3;
        c.problem = {.count = entry.has_uneven ? 70'001 : 200'003, .type = type, .root = 1};
        c.options.how = how;
        c.options.phases = entry.has_phases ? phases : 0;
        c.epochs = 3;
        check_case(entry, c);
        if (how == pattern::fused_sequential) {
          c.options.direct = true;
          check_case(entry, c);
          if (entry.combines) {
            c.options.inputs = input_path::rooms;
            check_case(entry, c);
          }
        }
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

/// Calls `act` in a world of `ranks` ranks and expects an `invalid_argument` whose text has `part`
/// at every rank.
template <class Act>
void expect_refusal(int ranks, const std::string& part, Act&& act) {
  run_threads(ranks, [&](world& w) {
    try {
      act(w);
      ADD_FAILURE() << "nothing was refused at rank " << w.rank();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument) << e.what();
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  });
}

}  // namespace untax::testing
