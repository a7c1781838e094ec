#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/select/schema.hpp>

#include "src/select/cells.hpp"

namespace untax::select {
namespace {

bool has_any(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

/// The kind of a column, judged by names and cells.
struct column_kind {
  bool is_text = false;
  bool is_whole = true;         ///< all numbers are whole
  bool is_positive = true;      ///< no number is below 0
  std::set<std::string> texts;  ///< of its cells, at most 64
};

column_kind kind_of(const cells& from, std::size_t column) {
  constexpr std::size_t most_texts = 64;
  column_kind kind;
  for (std::size_t row = 0; row < from.rows.size(); ++row) {
    const std::string& text = from.rows[row][column];
    if (kind.texts.size() < most_texts) kind.texts.insert(text);
    if (text.empty()) continue;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end != '\0') {
      kind.is_text = true;
      continue;
    }
    kind.is_whole = kind.is_whole && value == std::floor(value);
    kind.is_positive = kind.is_positive && value >= 0;
  }
  return kind;
}

/// The unit that the name of a time ends with, in seconds; 0: none.
double unit_in(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units = {
      {{"_ns", 1e-9}, {"_us", 1e-6}, {"_ms", 1e-3}, {"_s", 1}}};
  for (const auto& [suffix, unit] : units) {
    if (name.ends_with(suffix)) return unit;
  }
  return 0;
}

bool is_named_time(const std::string& name) {
  return name.starts_with("t_") || unit_in(name) > 0 || has_any(name, {"time", "elapsed"});
}

/// A name that a feature may have.
std::string feature_name(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace

schema draft_schema(const std::string& path) {
  const cells from = cells_of_file(path);
  schema draft;
  draft.title = "a draft: see which columns are times, and which features have to be gathered";
  std::vector<column_kind> kinds;
  for (std::size_t c = 0; c < from.columns.size(); ++c) kinds.push_back(kind_of(from, c));
  std::vector<std::size_t> times;
  for (std::size_t c = 0; c < from.columns.size(); ++c) {
    const bool is_kernel = has_any(from.columns[c], {"kernel", "algorithm", "variant"}) &&
                           kinds[c].is_text && kinds[c].texts.size() < 64;
    if (is_kernel && draft.kernel_column.empty()) draft.kernel_column = from.columns[c];
    if (is_named_time(from.columns[c]) && !kinds[c].is_text) times.push_back(c);
  }
  // A column of kernels beside one of times makes a long table, unless a line has other times, too.
  const bool is_long = !draft.kernel_column.empty() && times.size() == 1;
  if (!is_long) draft.kernel_column.clear();
  if (is_long) draft.time_column = from.columns[times.front()];
  if (times.empty()) {
    // If names decide nothing: a column with fractions that is not a statistic.
    for (std::size_t c = 0; c < from.columns.size(); ++c) {
      const bool is_statistic = has_any(from.columns[c], {"mean", "var", "ratio", "speed", "dens",
                                                          "skew", "kurt", "min", "max", "cost"});
      if (!kinds[c].is_text && !kinds[c].is_whole && kinds[c].is_positive && !is_statistic)
        times.push_back(c);
    }
  }
  std::vector<feature> gathered;
  for (std::size_t c = 0; c < from.columns.size(); ++c) {
    const std::string& name = from.columns[c];
    if (is_long && (name == draft.kernel_column || name == draft.time_column)) continue;
    if (kinds[c].is_text) {
      draft.labels.push_back(name);
    } else if (has_any(name, {"gather", "preprocess", "collect"})) {
      draft.gathering = feature_name(name);
    } else if (std::ranges::find(times, c) != times.end()) {
      if (!is_long) draft.candidates.push_back({name, name, "0", "", ""});
    } else if (has_any(name, {"row_", "min", "max", "mean", "var", "median", "skew", "q1", "q3"})) {
      gathered.push_back({feature_name(name), name, true, true});
    } else if (kinds[c].is_whole) {
      draft.features.push_back({feature_name(name), name, false, true});
    }
  }
  draft.features.insert(draft.features.end(), gathered.begin(), gathered.end());
  if (is_long) {
    const std::size_t kernel = from.column(draft.kernel_column);
    for (const std::string& name : kinds[kernel].texts)
      draft.candidates.push_back({name, name, "0", "", ""});
  }
  for (candidate& c : draft.candidates) {
    if (c.name.starts_with("t_")) c.name.erase(0, 2);
    if (std::isdigit(static_cast<unsigned char>(c.name.empty() ? '0' : c.name[0])) != 0)
      c.name.insert(0, "k");
    std::ranges::replace_if(
        c.name,
        [](unsigned char l) { return std::isalnum(l) == 0 && l != '_' && l != '-' && l != '.'; },
        '_');
  }
  const double unit = times.empty() ? 0 : unit_in(from.columns[times.front()]);
  if (unit > 0) draft.unit = unit;
  if (draft.candidates.size() < 2) {
    throw error(errc::invalid_argument,
                fmt::format("{}: no two columns look like times of kernels: named t_..., ..._ms or "
                            "time, or numbers that are not whole; there are {}",
                            path, fmt::join(from.columns, ", ")));
  }
  return draft;
}

}  // namespace untax::select
