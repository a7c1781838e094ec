#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <untax/select/schema.hpp>
#include <untax/select/table.hpp>

namespace untax::select {

/// The most bytes of a table, as CSV or JSON.
inline constexpr std::size_t most_bytes = std::size_t{512} << 20;

/// The cells of a table as texts, with the names of its columns.
struct cells {
  std::string origin;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  ///< line of each row, from 1; for JSON the number of its object

  /// The index of a column. Throws `invalid_argument` that lists the columns.
  [[nodiscard]] std::size_t column(std::string_view name) const;
  /// The number in a cell; NaN if it is empty. Throws `invalid_argument` for any other text.
  [[nodiscard]] double number(std::size_t row, std::size_t column) const;
  /// Throws `invalid_argument`: "<origin>, line 3: <what>".
  [[noreturn]] void refuse(std::size_t row, const std::string& what) const;
};

/// The cells of a long table with one row for each of its inputs, and a column for each kernel.
[[nodiscard]] cells widened(const cells& long_cells, const schema& what);
/// `from`, widened if it is a long table.
[[nodiscard]] cells wide_cells(cells from, const schema& what);
/// The table of cells with one row for each input.
[[nodiscard]] table table_of(const cells& from, const schema& what);
/// The rows of the first cells, each joined with the rows of the other cells that have the same
/// labels. Rows without such partners are left out.
[[nodiscard]] cells joined(const std::vector<cells>& parts, const std::vector<std::string>& labels);
/// The cells of a file, JSON or CSV by its name.
[[nodiscard]] cells cells_of_file(const std::string& path);

/// Reads CSV. Throws `invalid_argument` if a row has another number of cells than the first.
[[nodiscard]] cells cells_of_csv(std::string_view text, std::string_view origin);
[[nodiscard]] cells cells_of_json(std::string_view text, std::string_view origin);

}  // namespace untax::select
