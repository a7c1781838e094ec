#pragma once

#include <functional>
#include <memory>

#include <untax/taxes/ablation.hpp>

#include "ops/timing/predictor.hpp"

namespace untax {

/// A backend that predicts times on the GPUs of a machine: by `repeats` simulations of each step,
/// in which the ranks begin at different times. Throws `unsupported` if the machine has fewer GPUs
/// than ranks.
[[nodiscard]] std::unique_ptr<tax_backend> make_predicted_backend(const timing::machine& m,
                                                                  const calibration& known,
                                                                  int ranks, int repeats,
                                                                  std::function<void()> progress);

}  // namespace untax
