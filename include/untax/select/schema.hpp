#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace untax::select {

/// A feature of an input: a column of the table, or an expression over features before it.
struct feature {
  std::string name;
  std::string is;         ///< the name of a column if `given`, else an expression
  bool gathered = false;  ///< its value has to be gathered, which costs `schema::gathering`
  bool given = true;      ///< the caller of a selector gives its value; others are computed
};

/// A kernel that can be chosen.
struct candidate {
  std::string name;  ///< letters, digits, _, - and .; a header has _ in place of the last two
  /// The column of the time of one iteration, whose empty cells are failures; of a long table, the
  /// cell that names the kernel.
  std::string time;
  /// an expression over columns and features: the cost before the first iteration
  std::string setup;
  /// A condition on features without which the candidate may fail or be very slow; empty: none. The
  /// candidate is not chosen if it does not hold.
  std::string guard;
  /// A condition on known features under which the guard holds, whatever the gathered ones are. It
  /// replaces a guard that uses gathered features as long as they are not gathered; empty: none.
  std::string known_guard;
};

/// The meaning of the columns of a table of run times, and the candidates of a selector.
struct schema {
  std::vector<feature> features;
  std::vector<candidate> candidates;
  std::string gathering = "0";        ///< an expression over columns and known features: its cost
  std::vector<std::string> labels;    ///< columns whose cells name a record
  double unit = 1;                    ///< the unit of times, setups and gathering, in seconds
  std::vector<double> iterations{1};  ///< numbers of iterations to train for, a known feature
  std::string title;                  ///< the source of the table
  /// Of a long table, each line of which has the time of one kernel for one input: the columns of
  /// the kernel's name and of its time. Lines with the same labels are one record.
  std::string kernel_column;
  std::string time_column;
};

/// Reads a schema from a JSON text, which docs/select.md describes. `origin` names it in errors.
/// Throws `invalid_argument`.
[[nodiscard]] schema read_schema(std::string_view text, std::string_view origin);
/// The JSON text that `read_schema` reads.
[[nodiscard]] std::string to_json(const schema& s);

/// Throws `invalid_argument` unless there is a known feature, known features come before gathered
/// ones, there are at least two candidates, of which one has no guard, no name occurs twice, and
/// names are identifiers.
void require_usable(const schema& s);

/// A schema to begin with for the table in a file: a guess, from names and cells, of which columns
/// are labels, features and times, and whether the table is long. Throws `invalid_argument`.
[[nodiscard]] schema draft_schema(const std::string& path);

/// The name of a candidate in C++.
[[nodiscard]] std::string identifier_of(const candidate& c);

/// The names of all features, in their order.
[[nodiscard]] std::vector<std::string> feature_names(const schema& s);
/// The number of known features, which come first.
[[nodiscard]] std::size_t known_features(const schema& s);

}  // namespace untax::select
