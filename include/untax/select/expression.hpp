#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace untax::select {

/// An arithmetic expression over named numbers, such as "rows * row_max / nnz", or a comparison of
/// two, such as "row_max <= 4 * nnz / rows", which is 1 if it holds and 0 if it does not.
///
/// It has numbers, names, + - * /, unary minus, parentheses, min(a, b), max(a, b), sqrt(a),
/// log2(a), floor(a), mod(a, b), which is a - b * floor(a / b), and, at the top, comparisons (< <=
/// > >=) joined by "and". It is computed in double precision, in the order in which it is written.
class expression {
 public:
  /// Reads an expression. Throws `invalid_argument` with the position of an error, and for names
  /// that are not in `names`.
  static expression parse(std::string_view text, std::span<const std::string> names);

  /// The value of the expression, if the names have these values, in the order of `parse`.
  [[nodiscard]] double value(std::span<const double> values) const;
  /// The expression in C++, with these names of variables, in the order of `parse`. All brackets
  /// are written, and numbers are of double precision, so it has the same value bit for bit.
  [[nodiscard]] std::string cpp(std::span<const std::string> names) const;
  /// The text that was read.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// The indices of the names that occur in it, each once, in ascending order.
  [[nodiscard]] const std::vector<int>& uses() const noexcept { return uses_; }

 private:
  friend class expression_parser;

  enum class operation {
    number,
    name,
    negate,
    add,
    subtract,
    multiply,
    divide,
    least,
    greatest,
    root,
    logarithm,
    below,
    at_most,
    above,
    at_least,
    both,
    rounded_down,
    remainder,
  };
  /// Of a stack machine: operands first.
  struct instruction {
    operation what = operation::number;
    double number = 0;
    int name = -1;
  };

  std::string text_;
  std::vector<instruction> code_;
  std::vector<int> uses_;
  int deepest_ = 0;  // of the stack
};

}  // namespace untax::select
