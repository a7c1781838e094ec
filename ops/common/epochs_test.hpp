#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include <untax/world/launch.hpp>

namespace untax::testing {

/// Runs a case, which has `world`, `epochs` and `seed`, on threads, with fresh inputs and poisoned
/// results in every epoch; `make(world)` makes a rank's workload. Expects results within
/// `tolerance`, and in the last epoch the same bits at every rank, which it returns.
template <class Case, class Make>
std::vector<std::byte> check_epochs(const Case& c, const world_options& settings, double tolerance,
                                    const Make& make) {
  std::mutex mutex;
  std::vector<std::byte> bits;
  run_threads(
      c.world,
      [&](world& w) {
        auto load = make(w);
        for (int epoch = 1; epoch <= c.epochs; ++epoch) {
          load.refresh(c.seed + static_cast<std::uint64_t>(epoch));
          load.poison_result();
          load.run();
          const double error = load.relative_error();
          const std::scoped_lock lock(mutex);
          EXPECT_LE(error, tolerance) << "rank " << w.rank() << " epoch " << epoch;
          if (epoch < c.epochs) continue;
          if (bits.empty()) bits = load.bits();
          EXPECT_EQ(bits, load.bits()) << "rank " << w.rank();
        }
      },
      settings);
  return bits;
}

}  // namespace untax::testing
