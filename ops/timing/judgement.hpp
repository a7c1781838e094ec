#pragma once

#include <string>
#include <vector>

#include "ops/timing/figures.hpp"
#include "ops/timing/predictor.hpp"

namespace untax {

/// Fits the calibration of a machine to measurements: first a GEMM, a collective of the library and
/// attention alone, then the patterns that are composed of them.
[[nodiscard]] calibration fit(const timing::machine& m, const measurements& known);

/// A figure, and its prediction.
struct judged {
  figure what;
  double seconds = 0;  ///< predicted
  [[nodiscard]] double error() const noexcept { return seconds / what.seconds - 1; }
};
/// A term of the taxes: E0 to E4.
struct judged_term {
  measured_row row;
  int term = 0;
  double seconds = 0;
  [[nodiscard]] double error() const noexcept { return seconds / row.steps[term] - 1; }
  /// Whether the error is within 25 %, or within 5 % of E0.
  [[nodiscard]] bool good() const noexcept;
};
/// The errors of one operator and pattern.
struct judged_group {
  std::string name;
  int figures = 0;
  double mean = 0;    ///< absolute error
  double worst = 0;   ///< signed
  double within = 0;  ///< share of figures within 25 %
};

struct judgement {
  std::vector<judged> figures;       ///< the worst first
  std::vector<judged_term> terms;    ///< the worst first
  std::vector<judged_group> groups;  ///< the worst first
  double mean_error = 0;             ///< absolute
  double within_quarter = 0;         ///< share
  int orders = 0;                    ///< problems with two patterns or more
  int orders_right = 0;  ///< problems with the best two patterns in the right order, or within 3 %
  int ranks = 0;

  [[nodiscard]] int good_terms() const noexcept;
};

/// The errors of predictions, as kept in a file beside a machine.
struct judgement_summary {
  std::string device;
  int ranks = 0;
  double mean_error = 0;    ///< absolute
  std::string fingerprint;  ///< of what was judged
};
/// A text that differs if the numbers or the calibration of a machine differ.
[[nodiscard]] std::string fingerprint_of(const timing::machine& m, const calibration& known);
/// Reads what `untax machine --judge --out` wrote. Throws `invalid_argument`.
[[nodiscard]] judgement_summary load_judgement(const std::string& path);
/// The text that `load_judgement` reads.
[[nodiscard]] std::string summary_of(const judgement& result, const timing::machine& m,
                                     const calibration& known);

/// Predicts every figure.
[[nodiscard]] judgement judge(predictor& p, const measurements& known);

}  // namespace untax
