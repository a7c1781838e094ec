#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/choosers/ways.hpp"
#include "ops/choice/table.hpp"

namespace untax::bench {

/// The quality of a rule of choice at problems that it has not seen.
struct chooser_figure {
  std::string split;  ///< how problems were held out
  std::string of;     ///< which problems: "all" or "all_gather_gemm by rows"
  int ranks = 0;
  std::string way;
  int problems = 0;
  /// The part of the problems at which the choice is at most 3 % slower than the best.
  double within = 0;
  double mean_ratio = 0;  ///< geometric mean of the time of the choice / the best time
  double p95_ratio = 0;
  double worst_ratio = 0;
  std::string worst;  ///< the problem of `worst_ratio`
};

/// Judges each way without timing anything at the problem:
///
/// - "other problems": trained on `tables`, judged on `held_out`;
/// - "other problems, learnt in part": in five folds of `held_out`, trained on `tables` and the
/// other folds;
/// - "leave one shape out": trained without an n and k, with all rank counts, and judged on it;
/// - "leave one rank count out": trained on the tables of other rank counts.
[[nodiscard]] std::vector<chooser_figure> study_choosers(const std::vector<tuning_table>& tables,
                                                         const std::vector<tuning_entry>& held_out,
                                                         const std::vector<way>& ways);

/// The problems and times in the text of a file that `untax bench tune --check --json` wrote.
/// Throws `invalid_argument`.
[[nodiscard]] std::vector<tuning_entry> read_check(std::string_view text,
                                                   const std::string& origin);

/// The figures as JSON, with three decimals.
[[nodiscard]] std::string to_json(const std::vector<chooser_figure>& figures);

}  // namespace untax::bench
