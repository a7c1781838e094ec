#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace untax {

/// Columns that UTF-8 `text` takes on a terminal (code points that stand for one column each).
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// `text` broken at blanks into lines of at most `width` columns, each after `indent`; ends with a
/// newline.
[[nodiscard]] std::string wrapped(std::string_view text, int width, std::string_view indent = "");

/// A table of text: columns as wide as their contents, numbers to the right, never wider than
/// asked. A table that is too wide is printed as several, one below the other.
class text_table {
 public:
  enum class align { left, right };
  struct column {
    std::string title;
    align side = align::left;
  };

  /// The first `keys` columns say what a row is about; every part of a divided table begins with
  /// them. Refuses fewer than one (`untax::error`, invalid_argument).
  explicit text_table(std::vector<column> columns, std::size_t keys = 1);

  /// Appends a row; cells that are missing at its end are empty, more cells than columns are
  /// refused
  /// (`untax::error`, invalid_argument).
  void add(std::vector<std::string> cells);

  /// Draws a line before the next row.
  void rule();

  /// Columns that the table takes when nothing is cut.
  [[nodiscard]] int natural_width() const;

  /// The table, a newline after each line. Where it would be wider than `width`, it is divided into
  /// tables that fit, a blank line between them. Where the keys and one more column are already too
  /// wide, columns of text become narrower, the widest first, and their cells are broken into
  /// lines.
  [[nodiscard]] std::string render(int width = 100, bool utf8 = true) const;

 private:
  /// Which columns each part has.
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
