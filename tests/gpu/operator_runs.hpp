#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

#include "gpus.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace gpu_test {

using untax::dtype;
using untax::gather_axis;
using untax::gemm_problem;
using untax::operator_entry;
using untax::operator_options;
using untax::pattern;
using untax::workload;
using untax::world;

/// Heaps for operators of any shape that tests take.
inline untax::world_options roomy_world() {
  untax::world_options options = gpu_world(20s);
  options.heap_bytes = std::size_t{3} << 30;
  return options;
}

/// A case, for messages.
inline std::string text_of(const operator_entry& entry, const gemm_problem& p,
                           const operator_options& options) {
  return fmt::format(
      "{}, m {}, n {}, k {}, {}{}, {}, {}{}", entry.name, p.m, p.n, p.k, name_of(p.type),
      entry.gathers ? fmt::format(", gather {}", name_of(p.gather)) : "", name_of(options.how),
      name_of(options.move), options.constant_weights ? ", constant weights" : "");
}

/// Holds a stream still for so many microseconds.
inline void stall(const stream& s, std::int64_t microseconds) {
  hold(s.get(), std::chrono::microseconds(microseconds));
}

/// Three times other values, one run of the first, two of the next, each rank behind stalls of its
/// own.
inline void expect_right(world& w, const stream& s, workload& load, double tolerance,
                         std::uint64_t seed, std::mt19937_64& stalls) {
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    load.refresh(seed + epoch);
    load.poison_result();
    for (std::uint64_t run = 0; run <= epoch; ++run) {
      stall(s, static_cast<std::int64_t>(stalls() % 300));
      load.launch(s.get());
    }
    EXPECT_TRUE(s.done());
    w.check();
    EXPECT_LE(load.relative_error(), tolerance) << "epoch " << epoch << ": " << load.explain();
  }
}

}  // namespace gpu_test
