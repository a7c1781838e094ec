#pragma once

#include <functional>
#include <vector>

#include <untax/taxes/report.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// Median, 10th and 90th percentile (linear between neighbours). `seconds` is not empty.
[[nodiscard]] spread spread_of(std::vector<double> seconds);

/// What is measured in turn.
struct timed_variants {
  std::vector<std::function<void()>> run;  ///< each is called by all ranks together
  int warmups = 1;
  int repeats = 20;
  std::function<void()> after_run;  ///< after each run, at every rank: progress. May be empty
};

/// Times the variants in turn (A, B, C, A, B, C, ...), so that whatever else the machine does
/// strikes all of them. A run lasts from the moment the first rank starts to the moment the last
/// one ends. Collective; every rank gets the spreads, in the order of the variants. Throws what the
/// variants throw.
[[nodiscard]] std::vector<spread> time_interleaved(world& w, const timed_variants& variants);

}  // namespace untax
