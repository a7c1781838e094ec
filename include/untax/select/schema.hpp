#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace untax::select {

/// What is known of an input, or gathered about it: a column of the table, or an expression over
/// features before it.
struct feature {
  std::string name;
  std::string is;         ///< the name of a column where `given`, else an expression
  bool gathered = false;  ///< knowing it costs `schema::gathering`
  bool given = true;      ///< who asks a selector gives its value; others are computed
};

/// One of the kernels to choose from.
struct candidate {
  std::string name;
  std::string time;   ///< a column: of one iteration; empty cells are failures
  std::string setup;  ///< an expression over columns and features: once, before the first iteration
  /// A condition on features, where the candidate may blow up or fail; empty: it never does. It is
  /// not taken where the condition does not hold.
  std::string guard;
  /// A condition on known features under which the guard holds, whatever the gathered ones are. It
  /// answers for a guard that takes those while they are not gathered; empty: nothing does.
  std::string known_guard;
};

/// What the columns of a table of run times mean, and what is asked of a selector.
struct schema {
  std::vector<feature> features;
  std::vector<candidate> candidates;
  std::string gathering = "0";        ///< an expression over columns and known features: its cost
  std::vector<std::string> labels;    ///< columns that name a record
  double unit = 1;                    ///< seconds in a unit of times, setups and gathering
  std::vector<double> iterations{1};  ///< for which to train; the number is a known feature
  std::string title;                  ///< where the table is from
};

/// The schema in a JSON text, which docs/select.md describes. `origin` names it in errors. Throws
/// `invalid_argument`.
[[nodiscard]] schema read_schema(std::string_view text, std::string_view origin);
/// As `read_schema` takes it.
[[nodiscard]] std::string to_json(const schema& s);

/// Throws `invalid_argument` unless there are a feature that costs nothing, known features come
/// before gathered ones, there are two candidates, one of them without a guard, no name twice, and
/// names are identifiers.
void require_usable(const schema& s);

[[nodiscard]] std::vector<std::string> feature_names(const schema& s);
/// How many features cost nothing; they come first.
[[nodiscard]] std::size_t known_features(const schema& s);

}  // namespace untax::select
