#pragma once

#include <functional>
#include <memory>

#include <untax/taxes/ablation.hpp>

#include "ops/timing/predictor.hpp"

namespace untax {

/// A backend that predicts what GPUs of a machine would take: `repeats` simulations of each step,
/// with ranks that begin at other moments. Throws `unsupported` where the machine has fewer GPUs
/// than ranks.
[[nodiscard]] std::unique_ptr<tax_backend> make_predicted_backend(const timing::machine& m,
                                                                  const calibration& known,
                                                                  int ranks, int repeats,
                                                                  std::function<void()> progress);

}  // namespace untax
