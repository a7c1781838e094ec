#pragma once

#include <functional>
#include <vector>

#include <untax/taxes/report.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// The median, 10th and 90th percentile, linear between neighbours. `seconds` must not be empty.
[[nodiscard]] spread spread_of(std::vector<double> seconds);

/// The variants that are timed in turn.
struct timed_variants {
  std::vector<std::function<void()>> run;  ///< all ranks call each of them together
  int warmups = 1;
  int repeats = 20;
  /// called after each run, at every rank, to show progress. May be empty
  std::function<void()> after_run;
};

/// The seconds of each run of each variant, [variants][repeats]. The variants' runs number i were
/// timed in turn. Collective, as `time_interleaved`.
[[nodiscard]] std::vector<std::vector<double>> seconds_interleaved(world& w,
                                                                   const timed_variants& variants);

/// Times the variants in turn (A, B, C, A, B, C, ...), so that other load of the machine affects
/// all of them. A run lasts from the moment the first rank starts to the moment the last one ends.
/// Collective: it blocks until all runs are done, and every rank gets the spreads, in the order of
/// the variants. Throws the exceptions of the variants.
[[nodiscard]] std::vector<spread> time_interleaved(world& w, const timed_variants& variants);

}  // namespace untax
