#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <untax/select/selector.hpp>
#include <untax/select/table.hpp>
#include <untax/select/training.hpp>

namespace untax::select {

/// What a way of choosing costs over the records of a table, setup and gathering included, beside
/// what an oracle costs that always knows the best candidate and gathers nothing.
struct evaluation {
  std::string way;  ///< "known", "gathered", "selector", "always csr", ...
  double iterations = 1;
  double accuracy = 0;    ///< the part of the records for which the best candidate is run
  double mean_ratio = 0;  ///< geometric mean of cost / the oracle's
  double p99_ratio = 0;
  double worst_ratio = 0;
  std::string worst;   ///< the label of that record
  double seconds = 0;  ///< of all records
  double oracle_seconds = 0;
  int failures = 0;            ///< records for which what is run fails; their cost is a multiple
  std::vector<double> ratios;  ///< of each record, in the order of the table
};

/// Who does the choosing in records that it was not trained on.
struct judgement {
  std::vector<evaluation> ways;  ///< those of a selector first, then each candidate always
};

/// A selector and each single candidate, over the records of a table, for each number of iterations
/// of its schema. Ways are "known", "gathered" (always), "selector", and "gathered for free": as if
/// looking cost nothing, which says how good the tree is.
[[nodiscard]] judgement evaluate(const selector& chooser, const table& held_out,
                                 const loss_weights& weights = {});

/// The same by cross-validation: each record is judged by a selector that was trained without the
/// fold that it is in. `folds` and `seed` deal the records; training deals its own.
[[nodiscard]] judgement cross_validate(const table& all, int folds, std::uint64_t seed,
                                       const training_options& options = {});

/// How much faster what a selector chooses is, gathering included, than the best of a group of
/// candidates that an oracle chooses for each record.
struct speedup {
  std::string group;  ///< what the candidates' names begin with
  double iterations = 1;
  double mean = 0;     ///< geometric
  double least = 0;    ///< of a record
  std::string lowest;  ///< the label of that record
  std::size_t records = 0;
};

/// For each number of iterations; the group are candidates whose names begin like that. Records for
/// which none of them ran are left out. `found` has to be of these records. Throws
/// `invalid_argument` if no candidate is called so.
[[nodiscard]] std::vector<speedup> speedups_over(std::string_view group, const judgement& found,
                                                 const table& records);

/// A table in text, 100 columns wide.
[[nodiscard]] std::string text_of(const judgement& j);
/// A list of objects, without the single ratios; behind those of the ways come those of `over`.
[[nodiscard]] std::string json_of(const judgement& j, const std::vector<speedup>& over = {});
/// A picture: for each way the ratios to the oracle of all records, sorted, on a logarithmic scale.
[[nodiscard]] std::string svg_of(const judgement& j, const std::string& title);

}  // namespace untax::select
