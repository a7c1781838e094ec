#include "src/select/cells.hpp"

#include <csv.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>

#include "src/core/json.hpp"

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

/// Names of columns and labels are printed, and a terminal would act on what they contain.
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
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end()) {
    refuse_text(origin, fmt::format("there is no column \"{}\"; there are {}", name,
                                    fmt::join(columns, ", ")));
  }
  return static_cast<std::size_t>(found - columns.begin());
}

double cells::number(std::size_t row, std::size_t column) const {
  const std::string& text = rows[row][column];
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong == std::errc{} && end == text.data() + text.size() && !std::isfinite(value)) {
    refuse(row, fmt::format("\"{}\" in column \"{}\" is no finite number; leave it empty (null in "
                            "JSON, None in Python) where there is none",
                            text, columns[column]));
  }
  if (wrong != std::errc{} || end != text.data() + text.size()) {
    refuse(row, fmt::format("\"{}\" in column \"{}\" is no number", text.substr(0, 40),
                            columns[column]));
  }
  return value;
}

void cells::refuse(std::size_t row, const std::string& what) const {
  throw error(errc::invalid_argument, fmt::format("{}, line {}: {}", origin, lines[row], what));
}

cells cells_of_csv(std::string_view text, std::string_view origin) {
  text = utf8_text(text, origin);
  csv_parser parser{};
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0)
    throw error(errc::out_of_memory, fmt::format("{}: there is no memory to read it", origin));
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> freed(&parser, csv_free);
  csv_rows read;
  const auto parsed =
      csv_parse(&parser, text.data(), text.size(), csv_rows::field, csv_rows::end, &read);
  if (parsed != text.size() || csv_fini(&parser, csv_rows::field, csv_rows::end, &read) != 0) {
    refuse_text(origin, fmt::format("line {} is no comma-separated text: {}", read.rows.size(),
                                    csv_strerror(csv_error(&parser))));
  }
  if (read.rows.back().empty()) read.rows.pop_back();
  if (read.rows.empty())
    refuse_text(origin, "it is empty; it has to begin with the names of columns");
  cells made;
  made.origin = origin;
  made.columns = std::move(read.rows.front());
  refuse_control_characters(made.columns, origin, 1);
  for (std::size_t i = 1; i < read.rows.size(); ++i) {
    made.lines.push_back(i + 1);
    if (read.rows[i].size() != made.columns.size()) {
      refuse_text(origin, fmt::format("line {} has {} cells, and there are {} columns", i + 1,
                                      read.rows[i].size(), made.columns.size()));
    }
    made.rows.push_back(std::move(read.rows[i]));
    refuse_control_characters(made.rows.back(), origin, i + 1);
  }
  return made;
}

cells cells_of_json(std::string_view text, std::string_view origin) {
  using nlohmann::json;
  // Python writes NaN where it has no number. `number` says in which record.
  const json parsed = parse_json(text, origin, {.bytes = most_bytes, .non_finite = true});
  if (!parsed.is_array() || parsed.empty() || !parsed.front().is_object())
    refuse_text(origin, "a table in JSON is a list of objects, one a record");
  cells made;
  made.origin = origin;
  for (const auto& [name, value] : parsed.front().items()) made.columns.push_back(name);
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    made.lines.push_back(i + 1);
    if (!parsed[i].is_object()) {
      refuse_text(origin,
                  fmt::format("record {} is {}; it has to be an object", i + 1, shown(parsed[i])));
    }
    std::vector<std::string>& row = made.rows.emplace_back();
    for (const std::string& name : made.columns) {
      const auto found = parsed[i].find(name);
      const bool absent = found == parsed[i].end() || found->is_null();
      row.push_back(absent ? "" : found->is_string() ? found->get<std::string>() : shown(*found));
    }
  }
  return made;
}

}  // namespace untax::select
