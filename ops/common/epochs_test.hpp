#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include <untax/world/launch.hpp>

namespace untax::testing {

/// Runs a case, which has `world`, `epochs` and `seed`, on threads, with fresh inputs and poisoned
/// results in every epoch. `make(world)` makes a rank's trial, and `run(trial, epoch)` runs it.
/// Expects results within `tolerance`. Returns the bits of the last epoch, by rank.
template <class Case, class Make, class Run>
std::vector<std::vector<std::byte>> check_epochs(const Case& c, const world_options& settings,
                                                 double tolerance, const Make& make,
                                                 const Run& run) {
  std::mutex mutex;
  std::vector<std::vector<std::byte>> bits(static_cast<std::size_t>(c.world));
  run_threads(
      c.world,
      [&](world& w) {
        auto load = make(w);
        for (int epoch = 1; epoch <= c.epochs; ++epoch) {
          load.refresh(c.seed + static_cast<std::uint64_t>(epoch));
          load.poison_result();
          run(load, epoch);
          const double error = load.relative_error();
          const std::scoped_lock lock(mutex);
          EXPECT_LE(error, tolerance) << "rank " << w.rank() << " epoch " << epoch;
          bits[static_cast<std::size_t>(w.rank())] = load.bits();
        }
      },
      settings);
  return bits;
}

template <class Case, class Make>
std::vector<std::vector<std::byte>> check_epochs(const Case& c, const world_options& settings,
                                                 double tolerance, const Make& make) {
  return check_epochs(c, settings, tolerance, make, [](auto& load, int /*epoch*/) { load.run(); });
}

/// The bits of the result, which are expected to be the same at all ranks.
inline std::vector<std::byte> same_at_all_ranks(const std::vector<std::vector<std::byte>>& bits) {
  for (std::size_t rank = 1; rank < bits.size(); ++rank)
    EXPECT_EQ(bits[rank], bits.front()) << "rank " << rank;
  return bits.front();
}

}  // namespace untax::testing
