#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <untax/select/selector.hpp>
#include <untax/select/table.hpp>
#include <untax/select/training.hpp>

namespace untax::select {

/// The cost of a rule of choice over the records of a table, with setup and gathering, compared
/// with the cost of an oracle that always knows the best candidate and gathers nothing.
struct evaluation {
  std::string way;  ///< "known", "gathered", "selector", "always csr", ...
  double iterations = 1;
  double accuracy = 0;    ///< part of the records for which the best candidate is run
  double mean_ratio = 0;  ///< geometric mean of the cost divided by the oracle's
  double p99_ratio = 0;
  double worst_ratio = 0;
  std::string worst;   ///< the label of the record with the worst ratio
  double seconds = 0;  ///< sum over all records
  double oracle_seconds = 0;
  int failures = 0;            ///< records whose chosen candidate fails; they cost a multiple
  std::vector<double> ratios;  ///< by record, in the order of the table
};

/// The result of choosing for records that were not used for training.
struct judgement {
  std::vector<evaluation> ways;  ///< those of the selector first, then each candidate on its own
};

/// Evaluates a selector, and each candidate on its own, over the records of a table, for each
/// number of iterations of its schema. The ways of the selector are "known", "gathered" (always),
/// "selector", and "gathered for free", as if gathering cost nothing, which shows how good the tree
/// is.
[[nodiscard]] judgement evaluate(const selector& chooser, const table& held_out,
                                 const loss_weights& weights = {});

/// As `evaluate`, by cross-validation: each record is judged by a selector that was trained without
/// the fold of the record. `folds` and `seed` assign the records to folds; training makes its own
/// folds. Throws `invalid_argument` for fewer than 2 folds, or more folds than records.
[[nodiscard]] judgement cross_validate(const table& whole, int folds, std::uint64_t seed,
                                       const training_options& options = {});

/// The speedup of a selector's choice, with gathering, over the best candidate of a group, which an
/// oracle chooses for each record.
struct speedup {
  std::string group;  ///< the begin of the candidates' names
  double iterations = 1;
  double mean = 0;     ///< geometric mean
  double least = 0;    ///< the least of any record
  std::string lowest;  ///< the label of the record with the least speedup
  std::size_t records = 0;
};

/// The speedups for each number of iterations. The group is all candidates whose names begin with
/// `group`. Records for which none of them ran are left out. `judged` has to be of these records.
/// Throws `invalid_argument` if there is no such candidate.
[[nodiscard]] std::vector<speedup> speedups_over(std::string_view group, const judgement& judged,
                                                 const table& records);

/// A table as text, 100 columns wide.
[[nodiscard]] std::string text_of(const judgement& j);
/// A JSON list of objects without the ratios of records: those of the ways, then those of `over`.
[[nodiscard]] std::string json_of(const judgement& j, const std::vector<speedup>& over = {});
/// An SVG picture: for each way the sorted ratios of all records, on a logarithmic scale.
[[nodiscard]] std::string svg_of(const judgement& j, const std::string& title);

}  // namespace untax::select
