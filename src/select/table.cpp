#include <untax/select/table.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/select/features.hpp>

#include "src/select/cells.hpp"

namespace untax::select {
namespace {

/// Converts cells to records according to a schema.
class table_reader {
 public:
  table_reader(const cells& from, const schema& what)
      : from_(from), what_(what), features_(what), names_(feature_names(what)) {
    for (const feature& f : what.features) {
      if (f.given) given_.push_back(from.column(f.is));
    }
    std::vector<std::string> names = names_;
    names.insert(names.end(), from.columns.begin(), from.columns.end());
    for (const candidate& c : what.candidates) {
      times_.push_back(from.column(c.time));
      setups_.push_back(expression::parse(c.setup.empty() ? "0" : c.setup, names));
    }
    gathering_ = expression::parse(what.gathering, names);
    for (const std::string& label : what.labels) labels_.push_back(from.column(label));
  }

  table read() {
    require_usable(what_);
    table result;
    result.what = what_;
    for (std::size_t i = 0; i < from_.rows.size(); ++i) add(i, result);
    if (result.records() == 0)
      throw error(errc::invalid_argument,
                  fmt::format("{}: no line has a time of any candidate", from_.origin));
    return result;
  }

 private:
  void add(std::size_t row, table& result) const {
    std::vector<double> times;
    bool any = false;
    for (std::size_t c = 0; c < times_.size(); ++c) {
      times.push_back(from_.number(row, times_[c]) * what_.unit);
      if (times[c] == 0) {
        // The clock was too coarse.
        times[c] = std::nan("");
        ++result.zero_times;
      }
      any = any || !std::isnan(times[c]);
      if (!std::isnan(times[c]) && !(times[c] > 0 && std::isfinite(times[c]))) {
        from_.refuse(row,
                     fmt::format("the time of {} is {}; it has to be 0 or more, or empty where "
                                 "the candidate failed",
                                 what_.candidates[c].name, from_.rows[row][times_[c]]));
      }
    }
    if (!any) return;
    std::vector<double> given;
    for (const std::size_t column : given_) given.push_back(from_.number(row, column));
    const std::vector<double> features = features_.complete(given);
    for (std::size_t f = 0; f < features.size(); ++f) {
      if (!std::isfinite(features[f])) {
        from_.refuse(row, fmt::format("feature {} is {}; it has to be a finite number",
                                      what_.features[f].name, features[f]));
      }
    }
    std::vector<double> values = features;
    for (std::size_t c = 0; c < from_.columns.size(); ++c) values.push_back(value_or_nan(row, c));
    std::vector<double> setups;
    std::vector<double> allowed;
    for (std::size_t c = 0; c < setups_.size(); ++c) {
      setups.push_back(
          cost_of(row, setups_[c], values, "the setup of " + what_.candidates[c].name));
      allowed.push_back(features_.allows(c, features) ? 1 : 0);
    }
    result.gathering.push_back(cost_of(row, gathering_, values, "the cost of gathering"));
    result.labels.push_back(label_of(row));
    result.features.add_row(features);
    result.times.add_row(times);
    result.setups.add_row(setups);
    result.allowed.add_row(allowed);
  }

  /// The number in a cell, or NaN: a column that no feature uses may contain text.
  [[nodiscard]] double value_or_nan(std::size_t row, std::size_t column) const {
    try {
      return from_.number(row, column);
    } catch (const error&) {
      return std::nan("");
    }
  }
  [[nodiscard]] double cost_of(std::size_t row, const expression& e, std::span<const double> values,
                               const std::string& what) const {
    const double cost = e.value(values) * what_.unit;
    if (!(cost >= 0) || !std::isfinite(cost))
      from_.refuse(row, fmt::format("{} is {}; it has to be 0 or more", what, cost));
    return cost;
  }
  [[nodiscard]] std::string label_of(std::size_t row) const {
    if (labels_.empty()) return fmt::format("line {}", from_.lines[row]);
    std::string label;
    for (const std::size_t column : labels_)
      label += (label.empty() ? "" : "/") + from_.rows[row][column];
    return label;
  }

  const cells& from_;
  schema what_;
  feature_set features_;
  std::vector<std::string> names_;
  std::vector<std::size_t> given_;
  std::vector<std::size_t> times_;
  std::vector<expression> setups_;
  expression gathering_;
  std::vector<std::size_t> labels_;
};

}  // namespace

table table_of(const cells& from, const schema& what) { return table_reader(from, what).read(); }

cells wide_cells(cells from, const schema& what) {
  const bool is_long = !what.kernel_column.empty() &&
                       std::ranges::find(from.columns, what.kernel_column) != from.columns.end();
  return is_long ? widened(from, what) : std::move(from);
}

table read_csv(std::string_view text, std::string_view origin, const schema& what) {
  return table_of(wide_cells(cells_of_csv(text, origin), what), what);
}

table read_json(std::string_view text, std::string_view origin, const schema& what) {
  return table_of(wide_cells(cells_of_json(text, origin), what), what);
}

table records_of(const table& whole, std::span<const std::size_t> records) {
  table some;
  some.what = whole.what;
  for (const std::size_t i : records) {
    some.labels.push_back(whole.labels[i]);
    some.gathering.push_back(whole.gathering[i]);
    some.features.add_row(whole.features.row(i));
    some.times.add_row(whole.times.row(i));
    some.setups.add_row(whole.setups.row(i));
    some.allowed.add_row(whole.allowed.row(i));
  }
  return some;
}

}  // namespace untax::select
