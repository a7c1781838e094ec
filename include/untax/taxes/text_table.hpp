#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace untax {

/// The number of columns of UTF-8 `text` on a terminal, for code points that take one column each.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// Breaks `text` at blanks into lines of at most `width` columns, each after `indent`. The result
/// ends with a newline. A word that is longer than a line is broken, too.
[[nodiscard]] std::string wrapped(std::string_view text, int width, std::string_view indent = "");

/// A table of text. Columns are as wide as their contents, and numbers are aligned to the right.
/// The table is never wider than asked: one that is too wide is printed as several, one below the
/// other.
class text_table {
 public:
  enum class align { left, right };
  /// The title of a column, and the side that its cells are aligned to.
  struct column {
    std::string title;
    align side = align::left;
  };

  /// The first `keys` columns identify a row; every part of a divided table begins with them.
  /// Throws `invalid_argument` if `keys` is 0.
  explicit text_table(std::vector<column> columns, std::size_t keys = 1);

  /// Appends a row. Cells that are missing at its end are empty. Throws `invalid_argument` for no
  /// cells, and for more cells than columns.
  void add(std::vector<std::string> cells);

  /// Draws a line before the next row.
  void rule();

  /// The width of the table in columns, if nothing is cut.
  [[nodiscard]] int natural_width() const;

  /// The table, with a newline after each line. If it would be wider than `width`, it is divided
  /// into tables that fit, with a blank line between them. If the keys and one more column are
  /// already too wide, columns of text become narrower, the widest first, and their cells are
  /// broken into lines.
  [[nodiscard]] std::string render(int width = 100, bool utf8 = true) const;

 private:
  /// The columns of each part.
  [[nodiscard]] std::vector<std::vector<std::size_t>> parts_within(std::size_t limit) const;
  [[nodiscard]] text_table part_of(const std::vector<std::size_t>& chosen) const;
  [[nodiscard]] std::string render_whole(std::size_t limit, bool utf8) const;
  [[nodiscard]] std::vector<std::size_t> natural_widths() const;
  [[nodiscard]] std::vector<std::size_t> longest_words() const;
  [[nodiscard]] std::vector<std::size_t> widths_within(std::size_t limit) const;
  [[nodiscard]] std::string lines_of(const std::vector<std::string>& row,
                                     const std::vector<std::size_t>& wide, std::size_t limit) const;

  std::vector<column> columns_;
  std::size_t keys_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace untax
