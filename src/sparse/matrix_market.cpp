#include <untax/sparse/matrix_market.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <locale.h>

#include <untax/core/error.hpp>

#include "src/select/packed_file.hpp"

namespace untax::sparse {
namespace {

constexpr std::int64_t most_rows = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t most_bytes = std::size_t{32} << 30;
constexpr std::size_t most_shown = 40;  // characters that an error shows of an invalid text
constexpr std::size_t least_entry = 4;  // characters: "1 1\n"

enum class field { real, integer, natural, pattern };
enum class symmetry { general, symmetric, skew };

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return made;
}

/// A text of the file for an error: shortened, with '?' for characters that are not printable.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, most_shown)) result += c >= ' ' && c <= '~' ? c : '?';
  return "\"" + result + (text.size() > most_shown ? "...\"" : "\"");
}

/// strtod in the locale "C", whatever the program's locale is.
double in_the_language_of_c(const std::string& text) {
  // Never freed: the program may parse until it ends.
  static const locale_t c = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(text.c_str(), nullptr, c);
}

class reader {
 public:
  reader(std::string_view text, std::string_view origin) : rest_(text), origin_(origin) {}

  coordinates read() {
    header();
    sizes();
    made_.row.reserve(reserved());
    made_.column.reserve(reserved());
    made_.value.reserve(reserved());
    for (std::int64_t i = 0; i < entries_; ++i) {
      if (!next_line()) refuse(fmt::format("it ends after {} of {} entries", i, entries_));
      entry();
    }
    if (next_line())
      refuse(fmt::format("there are more entries than the {} of its header", entries_));
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, errc code = errc::invalid_argument) const {
    throw error(code, fmt::format("{}, line {}: {}", origin_, line_, what));
  }

  /// The elements to reserve: at most as many as fit in the text, whatever number it claims.
  [[nodiscard]] std::size_t reserved() const {
    const std::size_t room = rest_.size() / least_entry + 1;
    const auto said = static_cast<std::size_t>(entries_);
    return std::min(said, room) * (kind_ == symmetry::general ? 1 : 2);
  }

  /// Takes the next line as it is. False at the end.
  bool any_line() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    now_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    return true;
  }
  /// Takes the next line that is neither empty nor a comment. False at the end.
  bool next_line() {
    while (any_line()) {
      const std::size_t first = now_.find_first_not_of(" \t\r");
      if (first != std::string_view::npos && now_[first] != '%') return true;
    }
    return false;
  }
  /// The next word of the line; empty at its end.
  std::string_view word() {
    now_.remove_prefix(std::min(now_.find_first_not_of(" \t\r"), now_.size()));
    const std::size_t end = std::min(now_.find_first_of(" \t\r"), now_.size());
    const std::string_view line = now_.substr(0, end);
    now_.remove_prefix(end);
    return line;
  }
  void end_of_line(const char* what) {
    const std::string_view more = word();
    if (!more.empty() && !more.starts_with('%'))
      refuse(fmt::format("{} is followed by {}", what, shown(more)));
  }

  void header() {
    const bool present = any_line();
    const std::string banner = present ? lower(word()) : "";
    if (banner != "%%matrixmarket" && banner != "%matrixmarket") {
      line_ = std::max(line_, 1);
      refuse("a Matrix Market file begins with \"%%MatrixMarket matrix coordinate ...\"");
    }
    const std::string object = lower(word());
    const std::string format = lower(word());
    const std::string type = lower(word());
    const std::string shape = lower(word());
    if (object != "matrix")
      refuse(fmt::format("it holds a {}; it has to be a matrix", shown(object)));
    if (format == "array") {
      refuse("it is an array, which stores zeros, too; a sparse matrix has to be coordinate",
             errc::unsupported);
    }
    if (format != "coordinate")
      refuse(fmt::format("its format is {}; it has to be coordinate", shown(format)));
    if (type == "complex")
      refuse("its elements are complex; they have to be real, integer or pattern",
             errc::unsupported);
    struct named_field {
      std::string_view name;
      field type;
    };
    constexpr std::array types = {
        named_field{"real", field::real}, named_field{"double", field::real},
        named_field{"integer", field::integer}, named_field{"unsigned-integer", field::natural},
        named_field{"pattern", field::pattern}};
    const auto known = std::ranges::find(types, type, &named_field::name);
    if (known == types.end())
      refuse(fmt::format("its elements are {}; they have to be real, integer or pattern",
                         shown(type)));
    type_ = known->type;
    if (shape == "hermitian")
      refuse(
          "it is hermitian, which only complex matrices are; it has to be general, symmetric or "
          "skew-symmetric",
          errc::unsupported);
    constexpr std::array shapes = {"general", "symmetric", "skew-symmetric"};
    const auto match = std::ranges::find(shapes, shape);
    if (match == shapes.end())
      refuse(fmt::format("its symmetry is {}; it has to be general, symmetric or skew-symmetric",
                         shown(shape)));
    kind_ = static_cast<symmetry>(match - shapes.begin());
    if (kind_ == symmetry::skew && type_ == field::pattern)
      refuse("a pattern has no signs, so it cannot be skew-symmetric");
    end_of_line("the header");
  }

  /// std::from_chars accepts no '+', and after one it would accept a second sign.
  static std::string_view without_plus(std::string_view text) {
    return text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
  }

  std::int64_t whole(const char* what, std::int64_t least, std::int64_t most) {
    std::string_view text = word();
    const std::string_view written = text;
    if (text.empty()) refuse(fmt::format("{} is missing", what));
    text = without_plus(text);
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code == std::errc::invalid_argument || end != text.data() + text.size())
      refuse(fmt::format("{} is {}; it has to be a whole number", what, shown(written)));
    if (code != std::errc() || value < least || value > most)
      refuse(
          fmt::format("{} is {}; it has to be from {} to {}", what, shown(written), least, most));
    return value;
  }

  void sizes() {
    if (!next_line()) refuse("it ends before the line with rows, columns and entries");
    made_.rows = whole("the number of rows", 0, most_rows);
    made_.cols = whole("the number of columns", 0, most_rows);
    entries_ = whole("the number of entries", 0, std::numeric_limits<std::int64_t>::max());
    end_of_line("the number of entries");
    if (kind_ != symmetry::general && made_.rows != made_.cols)
      refuse(fmt::format("a matrix of {} x {} cannot be symmetric", made_.rows, made_.cols));
    if (entries_ > 0 && (made_.rows == 0 || made_.cols == 0))
      refuse(fmt::format("a matrix of {} x {} cannot have {} entries", made_.rows, made_.cols,
                         entries_));
  }

  double number() {
    std::string_view text = word();
    const std::string_view written = text;
    if (text.empty()) refuse("the entry has no value");
    text = without_plus(text);
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    // Underflow gives the nearest number; overflow is refused below.
    if (code == std::errc::result_out_of_range) value = in_the_language_of_c(std::string(text));
    if (code == std::errc::invalid_argument || end != text.data() + text.size() ||
        !std::isfinite(value))
      refuse(fmt::format("the value is {}; it has to be a finite number", shown(written)));
    if ((type_ == field::integer || type_ == field::natural) && value != std::floor(value))
      refuse(fmt::format("the value is {}; the header says integer", shown(written)));
    if (type_ == field::natural && value < 0)
      refuse(fmt::format("the value is {}; the header says unsigned-integer", shown(written)));
    return value;
  }

  void entry() {
    const std::int64_t row = whole("the row", 1, made_.rows) - 1;
    const std::int64_t column = whole("the column", 1, made_.cols) - 1;
    const double value = type_ == field::pattern ? 1 : number();
    end_of_line("the entry");
    if (kind_ == symmetry::skew && column == row && value != 0)
      refuse(
          fmt::format("entry ({}, {}) is {}, on the diagonal, where skew-symmetric matrices have "
                      "zeros",
                      row + 1, column + 1, value));
    add(row, column, value);
    if (kind_ != symmetry::general && row != column)
      add(column, row, kind_ == symmetry::skew ? -value : value);
  }
  void add(std::int64_t row, std::int64_t column, double value) {
    made_.row.push_back(static_cast<std::int32_t>(row));
    made_.column.push_back(static_cast<std::int32_t>(column));
    made_.value.push_back(value);
  }

  std::string_view rest_;
  std::string_view origin_;
  std::string_view now_;
  int line_ = 0;
  field type_ = field::real;
  symmetry kind_ = symmetry::general;
  std::int64_t entries_ = 0;
  coordinates made_;
};

}  // namespace

coordinates read_matrix_market(std::string_view text, std::string_view origin) {
  return reader(utf8_text(text, origin), origin).read();
}

coordinates load_matrix_market(const std::string& path) {
  return read_matrix_market(unpacked_text_of_file(path, {.bytes = most_bytes}), path);
}

}  // namespace untax::sparse
