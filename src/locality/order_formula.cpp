#include <untax/locality/order_formula.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/core/text_file.hpp"

namespace untax::locality {
namespace {

using operation = formula_program::operation;

constexpr int most_nested = 50;  // limit of nesting, so that no text overflows the parser's stack

/// Division that rounds down, as in Python.
std::int64_t divided(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// A binary operator: its sign, how strongly it binds, and the operation.
struct binary_sign {
  std::string_view sign;
  int strength;
  operation what;
};
// Longer signs come before shorter ones with which they begin.
constexpr std::array binary_signs = {
    binary_sign{"<<", 5, operation::left},    binary_sign{">>", 5, operation::right},
    binary_sign{"<=", 1, operation::at_most}, binary_sign{">=", 1, operation::at_least},
    binary_sign{"==", 1, operation::equal},   binary_sign{"!=", 1, operation::unequal},
    binary_sign{"<", 1, operation::below},    binary_sign{">", 1, operation::above},
    binary_sign{"|", 2, operation::either},   binary_sign{"^", 3, operation::differing},
    binary_sign{"&", 4, operation::both},     binary_sign{"+", 6, operation::add},
    binary_sign{"-", 6, operation::subtract}, binary_sign{"*", 7, operation::multiply},
    binary_sign{"//", 7, operation::divide},  binary_sign{"%", 7, operation::remainder},
};

/// Reads the statements of a formula.
class formula_reader {
 public:
  formula_reader(std::string_view text, std::string_view origin, std::vector<std::string> given,
                 const std::vector<std::string>& axes)
      : text_(text), origin_(origin), axes_(axes) {
    program_.names = std::move(given);
    program_.given = static_cast<int>(program_.names.size());
  }

  formula_program read() {
    std::size_t begin = 0;
    std::string last;
    for (; begin <= text_.size(); ++line_) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      const std::string_view line = text_.substr(begin, end - begin);
      begin = end + 1;
      rest_ = line.substr(0, line.find('#'));
      skip_spaces();
      while (!rest_.empty()) {
        last = statement();
        if (!take(";") && !rest_.empty())
          refuse("expected an operator, ';' or the end of the line");
        skip_spaces();
      }
    }
    --line_;
    if (program_.statements.empty()) refuse("there is no statement");
    if (std::ranges::find(axes_, last) != axes_.end()) {
      compose();
    } else if (last != "p" && !last.empty()) {
      refuse(
          fmt::format("the last statement gives the block: an expression, p = ..., or the place "
                      "on an axis ({}); {} is none of them",
                      fmt::join(axes_, ", "), last));
    } else {
      program_.result = program_.statements.back().target;
    }
    return std::move(program_);
  }

 private:
  /// Reads a statement. Returns the name that it sets; "" if it is an expression.
  std::string statement() {
    formula_program::statement next;
    const std::string_view before = rest_;
    const std::string name = word();
    std::string target;
    if (!name.empty() && take("=") && !rest_.starts_with('=')) {
      target = name;
    } else {
      rest_ = before;
    }
    code_ = &next.code;
    expression(0);
    next.target = index_of(target.empty() ? "(result)" : target, true);
    program_.statements.push_back(std::move(next));
    return target;
  }

  /// Appends the number of the block at the places that the axes have.
  void compose() {
    formula_program::statement next;
    program_.has_places = true;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (i > 0) {
        next.code.push_back({operation::name, index_of(axes_[i] + "_blocks", false)});
        next.code.push_back({operation::multiply, 0});
      }
      next.code.push_back({operation::name, index_of(axes_[i], false)});
      if (i > 0) next.code.push_back({operation::add, 0});
    }
    next.target = index_of("p", true);
    program_.result = next.target;
    program_.statements.push_back(std::move(next));
  }

  void expression(int strength) {
    if (++nested_ > most_nested) refuse("too many brackets or signs within each other");
    factor();
    for (;;) {
      skip_spaces();
      const auto sign = std::ranges::find_if(
          binary_signs, [&](const binary_sign& known) { return rest_.starts_with(known.sign); });
      if (sign == binary_signs.end() || sign->strength <= strength) {
        if (rest_.starts_with('/') && !rest_.starts_with("//"))
          refuse("numbers are whole; a division that rounds down is //");
        break;
      }
      rest_.remove_prefix(sign->sign.size());
      expression(sign->strength);
      code_->push_back({sign->what, 0});
    }
    --nested_;
  }

  void factor() {
    if (++nested_ > most_nested) refuse("too many brackets or signs within each other");
    if (take("-")) {
      factor();
      code_->push_back({operation::negate, 0});
    } else if (take("~")) {
      factor();
      code_->push_back({operation::invert, 0});
    } else if (take("(")) {
      expression(0);
      require(")");
    } else {
      number_or_name();
    }
    --nested_;
  }

  void number_or_name() {
    skip_spaces();
    if (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) {
      const bool is_hex = rest_.starts_with("0x") || rest_.starts_with("0X");
      std::int64_t value = 0;
      const char* begin = rest_.data() + (is_hex ? 2 : 0);
      const auto [end, wrong] =
          std::from_chars(begin, rest_.data() + rest_.size(), value, is_hex ? 16 : 10);
      if (wrong != std::errc{} || value > (std::int64_t{1} << 40))
        refuse("this number is not below 2^40");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (rest_.starts_with('.')) refuse("numbers are whole");
      code_->push_back({operation::number, value});
      return;
    }
    const std::string name = word();
    if (name.empty()) refuse("expected a number, a name or '('");
    if (take("(")) return call(name);
    code_->push_back({operation::name, index_of(name, false)});
  }

  void call(const std::string& name) {
    const int arguments = name == "min" || name == "max" ? 2 : name == "where" ? 3 : 0;
    if (arguments == 0) {
      refuse(fmt::format(
          "there is no function {}; there are min(a, b), max(a, b) and where(condition, a, b)",
          name));
    }
    for (int i = 0; i < arguments; ++i) {
      if (i > 0) require(",");
      expression(0);
    }
    require(")");
    code_->push_back({name == "min"   ? operation::least
                      : name == "max" ? operation::greatest
                                      : operation::choice,
                      0});
  }

  int index_of(const std::string& name, bool may_declare) {
    const auto known = std::ranges::find(program_.names, name);
    if (known != program_.names.end()) return static_cast<int>(known - program_.names.begin());
    if (!may_declare) {
      refuse(fmt::format("{} is not known; known are {}", name, fmt::join(program_.names, ", ")));
    }
    program_.names.push_back(name);
    return static_cast<int>(program_.names.size()) - 1;
  }

  std::string word() {
    skip_spaces();
    std::size_t length = 0;
    const auto fits = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    if (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) return {};
    while (length < rest_.size() && fits(rest_[length])) ++length;
    std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return name;
  }
  void skip_spaces() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0)
      rest_.remove_prefix(1);
  }
  bool take(std::string_view sign) {
    skip_spaces();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }
  void require(std::string_view sign) {
    if (!take(sign)) refuse(fmt::format("expected '{}'", sign));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::invalid_argument,
                fmt::format("{}:{}: {}{}", origin_, line_, what,
                            rest_.empty() ? "" : fmt::format(", at '{}'", rest_.substr(0, 30))));
  }

  std::string_view text_;
  std::string_view origin_;
  const std::vector<std::string>& axes_;
  std::string_view rest_;
  int line_ = 1;
  int nested_ = 0;
  std::vector<formula_program::instruction>* code_ = nullptr;
  formula_program program_;
};

/// The numbers of a text that contains nothing else; empty for any other text.
std::vector<std::int64_t> list_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    if (std::isspace(static_cast<unsigned char>(*at)) != 0 || *at == ',') {
      ++at;
      continue;
    }
    std::int64_t value = 0;
    const auto [rest, wrong] = std::from_chars(at, end, value);
    if (wrong != std::errc{}) return {};
    numbers.push_back(value);
    at = rest;
  }
  return numbers;
}

/// The value of a statement. Clears `is_natural` if C would compute another value in 32 bits.
std::int64_t value_of(const formula_program::statement& s, const std::vector<std::int64_t>& values,
                      bool& is_natural) {
  constexpr std::size_t deepest = 2 * most_nested + 4;
  std::array<std::int64_t, deepest> stack{};
  std::size_t top = 0;
  for (const formula_program::instruction& next : s.code) {
    if (next.what == operation::number) {
      stack.at(top++) = next.value;
      continue;
    }
    if (next.what == operation::name) {
      stack.at(top++) = values[static_cast<std::size_t>(next.value)];
      continue;
    }
    std::int64_t& last = stack[top - 1];
    if (next.what == operation::negate || next.what == operation::invert) {
      last = next.what == operation::negate ? -last : ~last;
      continue;
    }
    if (next.what == operation::choice) {
      top -= 2;
      stack[top - 1] = stack[top - 1] != 0 ? stack[top] : stack[top + 1];
      continue;
    }
    const std::int64_t b = stack[--top];
    std::int64_t& a = stack[top - 1];
    switch (next.what) {
      case operation::add:
        a += b;
        break;
      case operation::subtract:
        a -= b;
        break;
      case operation::multiply: {
        // Products beyond 64 bits wrap, as in the kernels for which formulas are meant.
        a = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) *
                                      static_cast<std::uint64_t>(b));
        break;
      }
      case operation::divide:
      case operation::remainder: {
        if (b == 0) throw error(errc::invalid_argument, "a division by 0");
        is_natural = is_natural && a >= 0 && b > 0;
        const std::int64_t quotient = divided(a, b);
        a = next.what == operation::divide ? quotient : a - quotient * b;
        break;
      }
      case operation::left:
      case operation::right:
        if (b < 0 || b > 40) throw error(errc::invalid_argument, fmt::format("a shift by {}", b));
        a = next.what == operation::left
                ? static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b)
                : a >> b;
        break;
      case operation::both:
        a &= b;
        break;
      case operation::differing:
        a ^= b;
        break;
      case operation::either:
        a |= b;
        break;
      case operation::below:
        a = a < b ? 1 : 0;
        break;
      case operation::at_most:
        a = a <= b ? 1 : 0;
        break;
      case operation::above:
        a = a > b ? 1 : 0;
        break;
      case operation::at_least:
        a = a >= b ? 1 : 0;
        break;
      case operation::equal:
        a = a == b ? 1 : 0;
        break;
      case operation::unequal:
        a = a != b ? 1 : 0;
        break;
      case operation::least:
        a = std::min(a, b);
        break;
      default:
        a = std::max(a, b);
    }
    is_natural = is_natural && a < (std::int64_t{1} << 31) && a >= -(std::int64_t{1} << 31);
  }
  return stack[0];
}

}  // namespace

std::string order_verdict::text() const {
  if (is_bijection()) return fmt::format("a bijection of {} blocks", blocks);
  std::string sentence =
      fmt::format("no bijection: {} of {} blocks are done, {} of them more than once", distinct,
                  blocks, repeated);
  if (outside > 0) sentence += fmt::format(", and {} numbers are no block", outside);
  sentence += fmt::format("; {} are never done", blocks - distinct);
  if (!missing.empty())
    sentence += fmt::format(" (block {}{})", fmt::join(missing, ", "),
                            blocks - distinct > static_cast<int>(missing.size()) ? ", ..." : "");
  return sentence;
}

order_verdict judge(const std::vector<std::int64_t>& numbers) {
  order_verdict verdict;
  verdict.blocks = static_cast<int>(numbers.size());
  std::vector<std::uint8_t> times(numbers.size());
  for (const std::int64_t number : numbers) {
    if (number < 0 || number >= verdict.blocks) {
      ++verdict.outside;
    } else {
      auto& count = times[static_cast<std::size_t>(number)];
      count = static_cast<std::uint8_t>(std::min(2, count + 1));
    }
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    verdict.distinct += times[i] > 0 ? 1 : 0;
    verdict.repeated += times[i] > 1 ? 1 : 0;
    if (times[i] == 0 && verdict.missing.size() < 4) verdict.missing.push_back(static_cast<int>(i));
  }
  return verdict;
}

order_formula order_formula::read(std::string_view text, std::string_view origin, const kernel& k,
                                  int domains) {
  order_formula formula;
  formula.origin_ = origin;
  const std::string_view content = utf8_text(text, origin);
  const std::vector<std::int64_t> list = list_in(content);
  if (list.size() > 1 || (list.size() == 1 && k.blocks() == 1)) {
    if (list.size() != static_cast<std::size_t>(k.blocks())) {
      throw error(errc::invalid_argument,
                  fmt::format("{}: a list of {} blocks does not fit a kernel of {}", origin,
                              list.size(), k.blocks()));
    }
    formula.numbers_ = list;
    return formula;
  }
  std::vector<std::string> names{"p", "blocks", "domains"};
  std::vector<std::int64_t> values{0, k.blocks(), domains};
  std::vector<std::string> axes;
  const auto give = [&](const std::string& name, std::int64_t value) {
    if (std::ranges::find(names, name) != names.end()) return;
    names.push_back(name);
    values.push_back(value);
  };
  for (const axis& a : k.axes()) {
    axes.push_back(a.name);
    give(a.name, 0);
  }
  for (const axis& a : k.axes()) give(a.name + "_blocks", a.extent);
  for (const auto& [name, value] : k.all_sizes()) {
    if (value == std::floor(value) && std::abs(value) < 1e12)
      give(name, static_cast<std::int64_t>(value));
  }
  formula_program program = formula_reader(content, origin, names, axes).read();
  program.values = values;
  values.resize(program.names.size());
  const std::vector<std::int64_t> at_start = values;
  const auto at_axis = [&](std::size_t axis) {
    return static_cast<std::size_t>(std::ranges::find(program.names, axes[axis]) -
                                    program.names.begin());
  };
  formula.numbers_.reserve(static_cast<std::size_t>(k.blocks()));
  for (int p = 0; p < k.blocks(); ++p) {
    values = at_start;
    values[0] = p;
    const std::vector<int> places = k.coordinates(p);
    for (std::size_t i = 0; i < axes.size(); ++i) values[at_axis(i)] = places[i];
    for (const auto& s : program.statements) {
      try {
        values[static_cast<std::size_t>(s.target)] = value_of(s, values, program.is_natural);
      } catch (const error& wrong) {
        throw error(errc::invalid_argument,
                    fmt::format("{}: {} at position {}", origin, wrong.what(), p));
      }
    }
    bool is_inside = true;
    for (std::size_t i = 0; program.has_places && i < axes.size(); ++i) {
      const std::int64_t place = values[at_axis(i)];
      is_inside = is_inside && place >= 0 && place < k.axes()[i].extent;
    }
    formula.numbers_.push_back(is_inside ? values[static_cast<std::size_t>(program.result)] : -1);
  }
  formula.program_ = std::make_shared<const formula_program>(std::move(program));
  return formula;
}

block_order order_formula::order() const {
  const order_verdict verdict = judge(numbers_);
  if (!verdict.is_bijection())
    throw error(errc::invalid_argument, fmt::format("{}: {}", origin_, verdict.text()));
  auto blocks = std::make_shared<std::vector<int>>(numbers_.begin(), numbers_.end());
  auto positions = std::make_shared<std::vector<int>>(numbers_.size());
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    (*positions)[static_cast<std::size_t>(numbers_[i])] = static_cast<int>(i);
  return {origin_, {listed_order{blocks, positions, program_}}, order::direction::forward};
}

}  // namespace untax::locality
