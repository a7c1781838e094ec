#pragma once

#include <functional>
#include <string>

#include <untax/taxes/layer.hpp>
#include <untax/taxes/report.hpp>

namespace untax {

/// How the taxes are measured.
struct ablation_options {
  int ranks = 2;
  int repeats = 20;  ///< timed runs of each variant
  int workers = 0;   ///< computing workers of a rank; 0: untax chooses
  std::uint64_t seed = 1;
  /// Called after each run, warm-up included, by one thread; `runs_of` says how often that will be.
  /// May be empty.
  std::function<void()> progress;
};

/// How many runs `measure_taxes` makes for one operation.
[[nodiscard]] int runs_of(const layer_operation& op, const ablation_options& options);

/// Takes the time of one operation apart by ablation, on the host engine with ranks as threads:
///
///     E0 bulk_library, eager      E1 bulk_library, graph      E2 bulk_synchronous, graph
///     E3 producer_consumer        E4 the best fused pattern
///
/// All variants work on the same matrices, interleaved in one process. The bound is the larger of
/// the multiplications alone, everything local, and the transfers alone; both measured in the same
/// turns. Throws `invalid_argument` for an unknown operator, and what running it throws.
[[nodiscard]] tax_row measure_taxes(const layer_operation& op, const ablation_options& options);

}  // namespace untax
