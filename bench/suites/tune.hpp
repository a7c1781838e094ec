#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/choice/table.hpp"

namespace untax::bench {

/// An operator, the axis that it gathers, and the type of its partial results, as in tables.
struct tuned_family {
  std::string operator_name;
  gather_axis gather = gather_axis::rows;
  dtype partials = dtype::bf16;
};
/// The families of all GEMM operators, by rows and by k, with partial results of both types, or
/// only those of `operator_name`.
[[nodiscard]] std::vector<tuned_family> tuned_families(const std::string& operator_name = {});

/// The problems at which a table is measured: every combination of some m with some pairs of n and
/// k, as layers of models have them. `quick` takes fewer of both.
[[nodiscard]] std::vector<tuned_problem> tuning_grid(const tuned_family& family, int ranks,
                                                     bool quick);

/// The problems of all families, each combined with each number of ranks. Those of the quick grids
/// come first, since a measurement may be cut short.
[[nodiscard]] std::vector<tuned_problem> tuning_order(const std::vector<tuned_family>& families,
                                                      const std::vector<int>& ranks, bool quick);

/// Problems that are in no table, to judge the choices of tables: `count` sizes from the range of
/// the grid, log-uniform, drawn with a fixed seed; n and k are multiples of 8. None of them is in
/// the grid, quick or not.
[[nodiscard]] std::vector<tuned_problem> held_out_problems(const tuned_family& family, int ranks,
                                                           int count);

struct tune_options {
  std::vector<tuned_problem> problems;
  int repeats = 7;
  double seconds = 0;              ///< no problem is begun after this time; 0: no limit
  bool automatic = false;          ///< also makes an operator in the pattern `automatic`
  std::function<void()> progress;  ///< called after each problem. May be empty
};

/// The choice of `automatic` at a problem, and the reason.
struct made_choice {
  pattern chosen = pattern::automatic;
  std::string reason;
};

struct tune_result {
  tuning_table table;
  std::vector<made_choice> choices;  ///< with `automatic`: one for each entry of the table
  std::vector<std::string> wrong;    ///< patterns that were left out since they were wrong
  int left_out = 0;                  ///< problems that were not begun before the time limit
};

/// Times every pattern at every problem, bulk_library in a graph included, interleaved, and checks
/// the results. Entries are sorted by family, n, k and m, or, with `automatic`, in the order of
/// measurement. Throws `unsupported` if there are fewer GPUs than ranks, or no CUDA.
[[nodiscard]] tune_result run_tuning(const tune_options& options);

/// The choice of `automatic` at a problem, and the best pattern.
struct tune_verdict {
  tuned_problem problem;
  pattern chosen = pattern::automatic;
  pattern best = pattern::automatic;
  double chosen_seconds = 0;
  double best_seconds = 0;
  std::map<pattern, double> seconds;  ///< of all patterns
  std::string reason;

  [[nodiscard]] double loss() const noexcept { return chosen_seconds / best_seconds - 1; }
};

struct tune_check {
  std::string device;
  std::string library;
  std::vector<tune_verdict> rows;

  static constexpr double most_loss = 0.03;
  static constexpr double least_share = 0.95;
  /// The share of problems at which `automatic` is at most `most_loss` slower than the best.
  [[nodiscard]] double share() const noexcept;
  [[nodiscard]] bool met() const noexcept { return share() >= least_share; }
};

/// Compares the choices of `automatic` with the measured times. A choice without a time, since its
/// result was wrong, has no row.
[[nodiscard]] tune_check check_choices(const tune_result& result);

}  // namespace untax::bench
