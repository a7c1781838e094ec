#pragma once

#include <string>

#include "engines/timing/machine.hpp"
#include "ops/timing/calibration.hpp"
#include "ops/timing/judgement.hpp"

namespace untax::cli {

/// A description as a table: each number, its unit, and its source.
[[nodiscard]] std::string text_of(const timing::machine& m, int width, bool utf8);

/// A judgement as tables, the worst first.
[[nodiscard]] std::string text_of(const judgement& verdict, const timing::machine& m, int width,
                                  bool utf8);
[[nodiscard]] std::string markdown_of(const judgement& verdict, const timing::machine& m);
[[nodiscard]] std::string json_of(const judgement& verdict, const timing::machine& m);

/// The calibration that a machine names, which lies beside its file; an empty one if it names none.
[[nodiscard]] calibration calibration_of(const timing::machine& m, const std::string& file);

/// Whether a machine names no calibration, or one that is not there, as beside a copy of its file.
[[nodiscard]] bool is_uncalibrated(const timing::machine& m, const std::string& file);

/// "predicted for 8 x H200 by untax's timing engine, whose mean error on measurements is 12.0
/// %, and more for single figures (docs/timing.md)". `known` is the calibration that is used. There
/// is no error of numbers that were not judged.
[[nodiscard]] std::string prediction_text(const timing::machine& m, const calibration& known,
                                          const std::string& file);

}  // namespace untax::cli
