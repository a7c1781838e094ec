#include <untax/select/expression.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/select/double_literal.hpp"

namespace untax::select {

namespace {

constexpr int most_nested = 50;  // limit of nesting, so that no text overflows the parser's stack

}  // namespace

/// A recursive descent parser that emits postfix code.
class expression_parser {
 public:
  expression_parser(std::string_view text, std::span<const std::string> names)
      : text_(text), names_(names) {
    made_.text_ = text;
  }

  expression parse() {
    condition();
    while (take_word("and")) {
      condition();
      emit(operation::both);
    }
    skip_spaces();
    if (at_ < text_.size()) refuse("expected an operator or the end");
    std::ranges::sort(made_.uses_);
    // std::ranges::unique does not compile with clang 14.
    made_.uses_.erase(std::unique(made_.uses_.begin(), made_.uses_.end()), made_.uses_.end());
    return std::move(made_);
  }

 private:
  using operation = expression::operation;

  void condition() {
    sum();
    skip_spaces();
    if (at_ >= text_.size() || (text_[at_] != '<' && text_[at_] != '>')) return;
    const bool below = text_[at_++] == '<';
    const bool equal = take('=');
    sum();
    emit(below ? (equal ? operation::at_most : operation::below)
               : (equal ? operation::at_least : operation::above));
  }
  void sum() {
    product();
    for (;;) {
      if (take('+')) {
        product();
        emit(operation::add);
      } else if (take('-')) {
        product();
        emit(operation::subtract);
      } else {
        return;
      }
    }
  }
  void product() {
    factor();
    for (;;) {
      if (take('*')) {
        factor();
        emit(operation::multiply);
      } else if (take('/')) {
        factor();
        emit(operation::divide);
      } else {
        return;
      }
    }
  }
  void factor() {
    if (++nested_ > most_nested) refuse("too many brackets or signs within each other");
    if (take('-')) {
      factor();
      emit(operation::negate);
    } else if (take('(')) {
      sum();
      require(')');
    } else {
      number_or_name();
    }
    --nested_;
  }
  void number_or_name() {
    skip_spaces();
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '.') {
      number();
    } else if (std::isalpha(static_cast<unsigned char>(first)) != 0 || first == '_') {
      name();
    } else {
      refuse("expected a number, a name or '('");
    }
  }
  void number() {
    double value = 0;
    const char* end = text_.data() + text_.size();
    const auto [rest, wrong] = std::from_chars(text_.data() + at_, end, value);
    if (wrong != std::errc{}) refuse("this number cannot be represented");
    at_ = static_cast<std::size_t>(rest - text_.data());
    emit(operation::number, value);
  }
  void name() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '(') return call(word, start);
    const auto match = std::ranges::find(names_, word);
    if (match == names_.end()) {
      at_ = start;
      refuse(fmt::format("'{}' is not known; known are {}", word, fmt::join(names_, ", ")));
    }
    const auto index = static_cast<int>(match - names_.begin());
    made_.uses_.push_back(index);
    emit(operation::name, 0, index);
  }
  void call(std::string_view function, std::size_t start) {
    struct known {
      std::string_view name;
      int arguments;
      operation what;
    };
    constexpr std::array functions = {
        known{"min", 2, operation::least},          known{"max", 2, operation::greatest},
        known{"sqrt", 1, operation::root},          known{"log2", 1, operation::logarithm},
        known{"floor", 1, operation::rounded_down}, known{"mod", 2, operation::remainder}};
    const auto match = std::ranges::find(functions, function, &known::name);
    if (match == functions.end()) {
      at_ = start;
      refuse(fmt::format("there is no function '{}'; there are min, max, sqrt, log2, floor and mod",
                         function));
    }
    require('(');
    sum();
    if (match->arguments == 2) {
      require(',');
      sum();
    }
    require(')');
    emit(match->what);
  }

  void emit(operation what, double number = 0, int name = -1) {
    made_.code_.push_back({what, number, name});
    const bool pushes = what == operation::number || what == operation::name;
    const bool unary = what == operation::negate || what == operation::root ||
                       what == operation::logarithm || what == operation::rounded_down;
    depth_ += pushes ? 1 : unary ? 0 : -1;
    made_.deepest_ = std::max(made_.deepest_, depth_);
  }
  /// Whether `c` may stand in a name or a word, after its first character.
  static bool is_of_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char wanted) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view wanted) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    const std::size_t end = at_ + wanted.size();
    if (end < text_.size() && is_of_name(text_[end])) return false;
    at_ = end;
    return true;
  }
  void require(char wanted) {
    if (!take(wanted)) refuse(fmt::format("expected '{}'", wanted));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::invalid_argument,
                fmt::format("the expression '{}' cannot be read at character {}: {}", text_,
                            at_ + 1, what));
  }

  std::string_view text_;
  std::span<const std::string> names_;
  std::size_t at_ = 0;
  int nested_ = 0;
  int depth_ = 0;
  expression made_;
};

expression expression::parse(std::string_view text, std::span<const std::string> names) {
  return expression_parser(text, names).parse();
}

std::string expression::cpp(std::span<const std::string> names) const {
  std::vector<std::string> stack;
  const auto binary = [&](std::string_view sign) {
    const std::string last = std::move(stack.back());
    stack.pop_back();
    stack.back() = fmt::format("({} {} {})", stack.back(), sign, last);
  };
  const auto call = [&](std::string_view function, bool two) {
    std::string arguments = std::move(stack.back());
    stack.pop_back();
    if (two) {
      arguments = fmt::format("{}, {}", stack.back(), arguments);
      stack.pop_back();
    }
    stack.push_back(fmt::format("std::{}({})", function, arguments));
  };
  for (const instruction& next : code_) {
    switch (next.what) {
      case operation::number:
        stack.push_back(double_literal(next.number));
        break;
      case operation::name:
        stack.push_back(names[static_cast<std::size_t>(next.name)]);
        break;
      case operation::negate:
        stack.back() = fmt::format("(-{})", stack.back());
        break;
      case operation::root:
        call("sqrt", false);
        break;
      case operation::logarithm:
        call("log2", false);
        break;
      case operation::rounded_down:
        call("floor", false);
        break;
      case operation::remainder: {
        const std::string operand = stack.back();
        const std::string what = stack[stack.size() - 2];
        stack.pop_back();
        stack.back() = fmt::format("({} - {} * std::floor({} / {}))", what, operand, what, operand);
        break;
      }
      case operation::least:
        call("min", true);
        break;
      case operation::greatest:
        call("max", true);
        break;
      default: {
        constexpr std::array signs = {"+", "-", "*",  "/", "",   "",  "",
                                      "",  "<", "<=", ">", ">=", "&&"};
        binary(
            signs[static_cast<std::size_t>(next.what) - static_cast<std::size_t>(operation::add)]);
      }
    }
  }
  return stack.back();
}

double expression::value(std::span<const double> values) const {
  std::vector<double> stack;
  stack.reserve(static_cast<std::size_t>(deepest_));
  for (const instruction& next : code_) {
    if (next.what == operation::number) {
      stack.push_back(next.number);
      continue;
    }
    if (next.what == operation::name) {
      stack.push_back(values[static_cast<std::size_t>(next.name)]);
      continue;
    }
    const double last = stack.back();
    if (next.what == operation::negate) {
      stack.back() = -last;
      continue;
    }
    if (next.what == operation::root) {
      stack.back() = std::sqrt(last);
      continue;
    }
    if (next.what == operation::logarithm) {
      stack.back() = std::log2(last);
      continue;
    }
    if (next.what == operation::rounded_down) {
      stack.back() = std::floor(last);
      continue;
    }
    stack.pop_back();
    double& first = stack.back();
    switch (next.what) {
      case operation::add:
        first += last;
        break;
      case operation::subtract:
        first -= last;
        break;
      case operation::multiply:
        first *= last;
        break;
      case operation::divide:
        first /= last;
        break;
      case operation::remainder:
        first -= last * std::floor(first / last);
        break;
      case operation::least:
        first = std::min(first, last);
        break;
      case operation::greatest:
        first = std::max(first, last);
        break;
      case operation::below:
        first = first < last ? 1 : 0;
        break;
      case operation::at_most:
        first = first <= last ? 1 : 0;
        break;
      case operation::above:
        first = first > last ? 1 : 0;
        break;
      case operation::at_least:
        first = first >= last ? 1 : 0;
        break;
      default:
        first = first != 0 && last != 0 ? 1 : 0;
    }
  }
  return stack.back();
}

}  // namespace untax::select
