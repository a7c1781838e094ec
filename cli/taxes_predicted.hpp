#pragma once

#include <string>
#include <vector>

#include <untax/taxes/ablation.hpp>
#include <untax/taxes/report.hpp>

#include "engines/timing/machine.hpp"
#include "ops/timing/calibration.hpp"
#include "taxes_request.hpp"

namespace untax::cli {

/// The source of the predictions of `untax taxes --machine`.
struct prediction_source {
  timing::machine machine;
  calibration known;
  std::string text;  ///< "predicted for 8 x H200 by ..."
};

[[nodiscard]] prediction_source load_source(const std::string& file);

/// The taxes of an average layer for a number of ranks, or the reason why there are none.
struct scale_point {
  int ranks = 0;
  std::string refused;
  double whole = 0;  ///< E0
  double fused = 0;  ///< E4
  tax_breakdown parts;
  std::vector<tax_part> separate;  ///< the parts that have figures
};

/// "2,4,8": counts from 2 on. Throws `invalid_argument`.
[[nodiscard]] std::vector<int> counts_of(const std::string& text);

/// Predicts the taxes for each number of ranks. Throws `invalid_argument` if all are refused.
[[nodiscard]] std::vector<scale_point> scale_of(const CLI::App& verb, taxes_request what,
                                                const prediction_source& source,
                                                const std::vector<int>& counts, int repeats);
[[nodiscard]] std::string text_of(const std::vector<scale_point>& points, int width, bool utf8);
[[nodiscard]] std::string json_of(const std::vector<scale_point>& points,
                                  const prediction_source& source, const std::string& model);

}  // namespace untax::cli
