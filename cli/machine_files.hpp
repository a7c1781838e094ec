#pragma once

#include <string>

#include "engines/timing/machine.hpp"
#include "ops/timing/calibration.hpp"

namespace untax::cli {

/// The calibration that a machine names, which lies beside its file; an empty one if it names none.
[[nodiscard]] calibration calibration_of(const timing::machine& m, const std::string& file);

/// "predicted for 8 x H200 by untax's timing engine, whose mean error on measurements is 12.0
/// %, and more for single figures (docs/timing.md)".
[[nodiscard]] std::string prediction_text(const timing::machine& m, const std::string& file);

}  // namespace untax::cli
