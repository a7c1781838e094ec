#include "src/select/cells.hpp"

#include <csv.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"
#include "src/core/text_file.hpp"

namespace untax::select {
namespace {

/// The callbacks of libcsv, which collect the rows.
struct csv_rows {
  std::vector<std::vector<std::string>> rows{1};

  static void field(void* text, std::size_t bytes, void* self) {
    static_cast<csv_rows*>(self)->rows.back().emplace_back(static_cast<const char*>(text), bytes);
  }
  static void end(int, void* self) { static_cast<csv_rows*>(self)->rows.emplace_back(); }
};

[[noreturn]] void refuse_text(std::string_view origin, const std::string& what) {
  throw error(errc::invalid_argument, fmt::format("{}: {}", origin, what));
}

/// Names of columns and labels are printed, and a terminal would act on control characters in them.
void refuse_control_characters(const std::vector<std::string>& texts, std::string_view origin,
                               std::size_t line) {
  for (const std::string& text : texts) {
    const std::string character = control_character_in(text);
    if (character.empty()) continue;
    refuse_text(origin,
                fmt::format("line {}: a cell contains the control character {}", line, character));
  }
}

}  // namespace

std::size_t cells::column(std::string_view name) const {
  const auto match = std::ranges::find(columns, name);
  if (match == columns.end()) {
    const bool may_be_long = std::ranges::find(columns, "kernel") != columns.end();
    refuse_text(
        origin,
        fmt::format("there is no column \"{}\"; there are {}{}", name, fmt::join(columns, ", "),
                    may_be_long ? "; a table with a line for each kernel needs \"long\" in "
                                  "its schema (docs/select.md)"
                                : ""));
  }
  return static_cast<std::size_t>(match - columns.begin());
}

double cells::number(std::size_t row, std::size_t column) const {
  const std::string& text = rows[row][column];
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong == std::errc{} && end == text.data() + text.size() && !std::isfinite(value)) {
    refuse(row,
           fmt::format("\"{}\" in column \"{}\" is not a finite number; leave it empty (null in "
                       "JSON, None in Python) where there is none",
                       text, columns[column]));
  }
  if (wrong != std::errc{} || end != text.data() + text.size()) {
    const bool has_comma = text.find(',') != std::string::npos;
    refuse(row,
           fmt::format("\"{}\" in column \"{}\" is not a number{}", text.substr(0, 40),
                       columns[column], has_comma ? "; a decimal point has to be a point" : ""));
  }
  return value;
}

void cells::refuse(std::size_t row, const std::string& what) const {
  throw error(errc::invalid_argument, fmt::format("{}, line {}: {}", origin, lines[row], what));
}

namespace {

/// The character between cells, judged by the line of names: a comma, or else a semicolon or a tab.
unsigned char separator_of(std::string_view text) {
  const std::string_view names = text.substr(0, text.find('\n'));
  if (names.find(',') != std::string_view::npos) return ',';
  if (names.find(';') != std::string_view::npos) return ';';
  return names.find('\t') != std::string_view::npos ? '\t' : ',';
}

/// The labels of a row as one text.
std::string key_of(const cells& from, const std::vector<std::size_t>& labels, std::size_t row) {
  std::string key;
  for (const std::size_t column : labels) key += from.rows[row][column] + '\n';
  return key;
}

std::vector<std::size_t> columns_of(const cells& from, const std::vector<std::string>& names) {
  std::vector<std::size_t> columns;
  for (const std::string& name : names) columns.push_back(from.column(name));
  return columns;
}

}  // namespace

cells widened(const cells& long_cells, const schema& what) {
  const std::size_t kernel = long_cells.column(what.kernel_column);
  const std::size_t time = long_cells.column(what.time_column);
  const std::vector<std::size_t> labels = columns_of(long_cells, what.labels);
  cells wide;
  wide.origin = long_cells.origin;
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < long_cells.columns.size(); ++c) {
    if (c == kernel || c == time) continue;
    kept.push_back(c);
    wide.columns.push_back(long_cells.columns[c]);
  }
  std::map<std::string, std::size_t> column_of;
  for (const candidate& c : what.candidates) {
    if (!column_of.try_emplace(c.time, wide.columns.size()).second) continue;
    wide.columns.push_back(c.time);
  }
  std::map<std::string, std::size_t> row_of;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < long_cells.rows.size(); ++i) {
    const std::string& name = long_cells.rows[i][kernel];
    seen.insert(name);
    const auto column = column_of.find(name);
    if (column == column_of.end()) continue;
    const auto [at, is_new] = row_of.try_emplace(key_of(long_cells, labels, i), wide.rows.size());
    if (is_new) {
      wide.lines.push_back(long_cells.lines[i]);
      auto& row = wide.rows.emplace_back(wide.columns.size());
      for (std::size_t c = 0; c < kept.size(); ++c) row[c] = long_cells.rows[i][kept[c]];
    }
    std::string& cell = wide.rows[at->second][column->second];
    const std::string& next = long_cells.rows[i][time];
    // Of several times of a kernel for one input, the least counts.
    if (cell.empty()) {
      cell = next;
    } else if (!next.empty()) {
      const double before = wide.number(at->second, column->second);
      if (long_cells.number(i, time) < before) cell = next;
    }
  }
  for (const candidate& c : what.candidates) {
    if (seen.contains(c.time)) continue;
    refuse_text(long_cells.origin, fmt::format("no line has \"{}\" in column \"{}\"; there are {}",
                                               c.time, what.kernel_column, fmt::join(seen, ", ")));
  }
  return wide;
}

cells joined(const std::vector<cells>& parts, const std::vector<std::string>& labels) {
  cells joint = parts.front();
  const std::vector<std::size_t> own = columns_of(joint, labels);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const cells& more = parts[i];
    if (labels.empty())
      refuse_text(more.origin, "several tables are joined by \"labels\", and the schema has none");
    const std::vector<std::size_t> its = columns_of(more, labels);
    std::map<std::string, std::size_t> row_of;
    for (std::size_t row = 0; row < more.rows.size(); ++row)
      row_of.try_emplace(key_of(more, its, row), row);
    std::vector<std::size_t> added;
    for (std::size_t c = 0; c < more.columns.size(); ++c) {
      if (std::ranges::find(joint.columns, more.columns[c]) != joint.columns.end()) continue;
      added.push_back(c);
      joint.columns.push_back(more.columns[c]);
    }
    std::vector<std::vector<std::string>> rows;
    std::vector<std::size_t> lines;
    for (std::size_t row = 0; row < joint.rows.size(); ++row) {
      const auto other = row_of.find(key_of(joint, own, row));
      if (other == row_of.end()) continue;
      rows.push_back(std::move(joint.rows[row]));
      lines.push_back(joint.lines[row]);
      for (const std::size_t c : added) rows.back().push_back(more.rows[other->second][c]);
    }
    if (rows.empty())
      refuse_text(more.origin, fmt::format("no line has the labels of one in {}", joint.origin));
    joint.rows = std::move(rows);
    joint.lines = std::move(lines);
  }
  return joint;
}

cells cells_of_csv(std::string_view text, std::string_view origin) {
  text = utf8_text(text, origin);
  csv_parser parser{};
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0)
    throw error(errc::out_of_memory, fmt::format("{}: there is no memory to read it", origin));
  csv_set_delim(&parser, separator_of(text));
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> freed(&parser, csv_free);
  csv_rows read;
  const auto parsed =
      csv_parse(&parser, text.data(), text.size(), csv_rows::field, csv_rows::end, &read);
  if (parsed != text.size() || csv_fini(&parser, csv_rows::field, csv_rows::end, &read) != 0) {
    refuse_text(origin, fmt::format("line {} is not comma-separated text: {}", read.rows.size(),
                                    csv_strerror(csv_error(&parser))));
  }
  if (read.rows.back().empty()) read.rows.pop_back();
  if (read.rows.empty())
    refuse_text(origin, "it is empty; it has to begin with the names of columns");
  cells result;
  result.origin = origin;
  result.columns = std::move(read.rows.front());
  refuse_control_characters(result.columns, origin, 1);
  for (std::size_t i = 1; i < read.rows.size(); ++i) {
    result.lines.push_back(i + 1);
    if (read.rows[i].size() != result.columns.size()) {
      refuse_text(origin, fmt::format("line {} has {} cells, and there are {} columns", i + 1,
                                      read.rows[i].size(), result.columns.size()));
    }
    result.rows.push_back(std::move(read.rows[i]));
    refuse_control_characters(result.rows.back(), origin, i + 1);
  }
  return result;
}

cells cells_of_json(std::string_view text, std::string_view origin) {
  using nlohmann::json;
  // Python writes NaN for a missing number. `number` names the record in its error.
  const json parsed = parse_json(text, origin, {.bytes = most_bytes, .non_finite = true});
  if (!parsed.is_array() || parsed.empty() || !parsed.front().is_object())
    refuse_text(origin, "a table in JSON is a list of objects, one a record");
  cells result;
  result.origin = origin;
  for (const auto& [name, value] : parsed.front().items()) result.columns.push_back(name);
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    result.lines.push_back(i + 1);
    if (!parsed[i].is_object()) {
      refuse_text(origin,
                  fmt::format("record {} is {}; it has to be an object", i + 1, shown(parsed[i])));
    }
    std::vector<std::string>& row = result.rows.emplace_back();
    for (const std::string& name : result.columns) {
      const auto match = parsed[i].find(name);
      const bool absent = match == parsed[i].end() || match->is_null();
      row.push_back(absent ? "" : match->is_string() ? match->get<std::string>() : shown(*match));
    }
  }
  return result;
}

}  // namespace untax::select
