#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <untax/select/schema.hpp>

namespace untax::select {

/// A matrix of numbers.
class grid {
 public:
  grid() = default;
  grid(std::size_t rows, std::size_t cols, double value = 0)
      : cols_(cols), values_(rows * cols, value) {}

  [[nodiscard]] std::size_t rows() const noexcept {
    return cols_ == 0 ? 0 : values_.size() / cols_;
  }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] std::span<const double> row(std::size_t i) const {
    return {values_.data() + i * cols_, cols_};
  }
  [[nodiscard]] double operator()(std::size_t i, std::size_t j) const {
    return values_[i * cols_ + j];
  }
  [[nodiscard]] double& operator()(std::size_t i, std::size_t j) { return values_[i * cols_ + j]; }
  void add_row(std::span<const double> row) {
    cols_ = row.size();
    values_.insert(values_.end(), row.begin(), row.end());
  }

 private:
  std::size_t cols_ = 0;
  std::vector<double> values_;
};

/// Run times of candidates for inputs, with one record for each input. Times are in seconds; NaN is
/// a failure.
struct table {
  schema what;
  std::vector<std::string> labels;  ///< by record
  grid features;                    ///< records by features
  grid times;                       ///< records by candidates, for one iteration
  grid setups;                      ///< records by candidates
  std::vector<double> gathering;    ///< the cost of gathering features, by record
  grid allowed;                     ///< records by candidates: 1 if the guard holds
  std::size_t zero_times = 0;       ///< times of 0 in the file, taken as failures

  [[nodiscard]] std::size_t records() const noexcept { return labels.size(); }
  /// Seconds of `iterations` iterations, with setup; NaN if the candidate fails.
  [[nodiscard]] double cost(std::size_t record, std::size_t candidate, double iterations) const {
    return setups(record, candidate) + iterations * times(record, candidate);
  }
};

/// Reads comma-separated values whose first line has the names. Records for which no candidate has
/// a time are left out. Throws `invalid_argument` with origin and line for a column that is
/// missing, a feature that is not a finite number, a time that is neither empty nor 0 or more, and
/// if no record is left. Cells may be separated by semicolons or tabs, too.
[[nodiscard]] table read_csv(std::string_view text, std::string_view origin, const schema& what);
/// As `read_csv`, from JSON: a list of objects, whose fields are the columns; null is an empty
/// cell.
[[nodiscard]] table read_json(std::string_view text, std::string_view origin, const schema& what);
/// As above, from a file: JSON if its name ends with .json or .json.gz, else comma-separated
/// values. It is decompressed if it was compressed by gzip.
[[nodiscard]] table read_table(const std::string& path, const schema& what);
/// As above, from several files, such as run times, features and costs. A record has the cells of
/// all lines with its labels; a record that a file does not have is left out.
[[nodiscard]] table read_tables(const std::vector<std::string>& paths, const schema& what);

/// The table of the records with these indices.
[[nodiscard]] table records_of(const table& whole, std::span<const std::size_t> records);

}  // namespace untax::select
