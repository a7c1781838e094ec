#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/locality/kernel.hpp>

#include "src/core/text_file.hpp"

namespace untax::locality {
namespace {

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

/// Splits a text at the commas that are not in parentheses.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : 0;
    depth -= c == ')' ? 1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

bool is_name(const std::string& text) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), fits);
}

constexpr const char* line_forms =
    "title = TEXT, size NAME = X, axis NAME = X, steps = X, flops = X, resident = X, drifts = 1, "
    "lines = 1, operand NAME = rows, columns, bytes, and read, once or write NAME = row, rows, "
    "column, "
    "columns, or after = a place on each axis";

}  // namespace

/// Reads the text of one kernel line by line.
class kernel_reader {
 public:
  kernel_reader(std::string_view origin, const kernel::sizes& given)
      : origin_(origin), given_(given) {}

  kernel read(std::string_view text, int line) {
    std::istringstream lines{std::string(utf8_text(text, origin_))};
    for (std::string text_line; std::getline(lines, text_line);) {
      ++line_;
      text_line = trimmed(std::string_view(text_line).substr(0, text_line.find('#')));
      if (!text_line.empty()) take(text_line);
    }
    line_ = 0;
    finish(line);
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    const std::string place = line_ > 0 ? fmt::format("{}:{}", origin_, line_) : origin_;
    throw error(errc::invalid_argument, fmt::format("{}: {}", place, what));
  }

  void take(const std::string& line) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos)
      refuse(fmt::format("\"{}\" has no =; lines are {}", line.substr(0, 60), line_forms));
    std::istringstream head(line.substr(0, equals));
    std::string word;
    std::string name;
    std::string more;
    head >> word >> name >> more;
    if (!more.empty()) refuse(fmt::format("the word \"{}\" before the = is one too many", more));
    const std::string value = trimmed(std::string_view(line).substr(equals + 1));
    if (word == "title" && name.empty()) {
      made_.title_ = value;
      return;
    }
    const bool takes_name = word == "size" || word == "axis" || word == "operand" ||
                            word == "read" || word == "once" || word == "write";
    const bool takes_none = word == "steps" || word == "flops" || word == "resident" ||
                            word == "drifts" || word == "lines" || word == "after";
    if (!takes_name && !takes_none)
      refuse(
          fmt::format("\"{}\" does not begin a line of a kernel; lines are {}", word, line_forms));
    if (takes_name && !is_name(name))
      refuse(fmt::format("{} needs a name of letters, digits and _ before the =", word));
    if (takes_none && !name.empty()) refuse(fmt::format("{} takes no name", word));
    values(word, name, parts_of(value));
  }

  void values(const std::string& word, const std::string& name,
              const std::vector<std::string>& parts) {
    if (word == "size") {
      declare(name);
      const auto given = given_.find(name);
      const double value = given != given_.end() ? given->second : number(one(parts, word));
      if (!(value >= 0) || value > 1e12)
        refuse(fmt::format("size {} is {}; it has to be from 0 to 1e12", name, value));
      made_.sizes_.emplace_back(name, value);
    } else if (word == "axis") {
      declare(name);
      const double value = std::ceil(number(one(parts, word)) - 1e-9) + 0.0;
      if (!(value >= 1) || value > (1 << 24))
        refuse(
            fmt::format("axis {} has {} places; there have to be 1 to {}", name, value, 1 << 24));
      made_.axes_.push_back({name, static_cast<int>(value)});
    } else if (word == "operand") {
      operand(name, parts);
    } else if (word == "steps") {
      made_.steps_ = expression(one(parts, word), true);
    } else if (word == "flops") {
      made_.flops_ = number(one(parts, word));
      if (!(made_.flops_ >= 0)) refuse("flops have to be 0 or more");
    } else if (word == "resident") {
      made_.resident_ = static_cast<int>(number(one(parts, word)));
      if (made_.resident_ < 1 || made_.resident_ > 64) refuse("resident has to be from 1 to 64");
    } else if (word == "drifts") {
      made_.drifts_ = number(one(parts, word)) != 0;
    } else if (word == "lines") {
      made_.has_lines_ = number(one(parts, word)) != 0;
    } else if (word == "after") {
      if (parts.size() != made_.axes_.size())
        refuse(fmt::format("after has {} places, and there are {} axes", parts.size(),
                           made_.axes_.size()));
      auto& place = made_.after_.emplace_back();
      for (const std::string& part : parts) place.push_back(expression(part, true));
    } else {
      rectangle(word, name, parts);
    }
  }

  void operand(const std::string& name, const std::vector<std::string>& parts) {
    if (parts.size() != 3)
      refuse(fmt::format("operand {} needs rows, columns, bytes of an element", name));
    for (const auto& o : made_.operands_) {
      if (o.name == name) refuse(fmt::format("there is an operand {} already", name));
    }
    double extents[3];
    for (std::size_t i = 0; i < 3; ++i) {
      extents[i] = number(parts[i]);
      if (!(extents[i] >= 1) || extents[i] > 1e12 || extents[i] != std::floor(extents[i]))
        refuse(fmt::format("{} is {}; it has to be a whole number of 1 or more", parts[i],
                           extents[i]));
    }
    if (extents[2] > 4096) refuse("an element has at most 4096 bytes");
    // Bytes are counted in 64 bits.
    constexpr double most_bytes = 1e15;
    const double bytes = extents[0] * extents[1] * extents[2];
    if (bytes > most_bytes) {
      refuse(
          fmt::format("operand {} of {} x {} elements has {:.3g} bytes; it may have at most {:g}",
                      name, extents[0], extents[1], bytes, most_bytes));
    }
    auto& result = made_.operands_.emplace_back();
    result.name = name;
    result.rows = static_cast<std::int64_t>(extents[0]);
    result.columns = static_cast<std::int64_t>(extents[1]);
    result.element_bytes = static_cast<int>(extents[2]);
  }

  void rectangle(const std::string& word, const std::string& name,
                 const std::vector<std::string>& parts) {
    if (parts.size() != 4 && (parts.size() != 5 || word == "once"))
      refuse(fmt::format("{} {} needs row, rows, column, columns", word, name));
    kernel::rectangle result;
    result.is_write = word == "write";
    result.when = result.is_write  ? moment::last_step
                  : word == "once" ? moment::first_step
                                   : moment::every_step;
    const auto match = std::find_if(made_.operands_.begin(), made_.operands_.end(),
                                    [&](const auto& o) { return o.name == name; });
    if (match == made_.operands_.end())
      refuse(
          fmt::format("there is no operand {}; declare it before: operand {} = rows, columns, "
                      "bytes",
                      name, name));
    result.operand = static_cast<int>(match - made_.operands_.begin());
    if (parts.size() == 5) {
      const double step = number(parts[4]);
      if (!(step >= 0) || step != std::floor(step) || step > 1e6)
        refuse(fmt::format("{} is {}; the step of an access is a whole number", parts[4], step));
      result.when = moment::given_step;
      result.given_step = static_cast<int>(step);
    }
    for (std::size_t i = 0; i < 4; ++i) result.bounds.push_back(expression(parts[i], true));
    made_.rectangles_.push_back(std::move(result));
    rectangle_lines_.push_back(line_);
  }

  const std::string& one(const std::vector<std::string>& parts, const std::string& word) const {
    if (parts.size() != 1) refuse(fmt::format("{} takes one value", word));
    return parts.front();
  }
  void declare(const std::string& name) const {
    if (!made_.rectangles_.empty() || made_.steps_ || !made_.after_.empty())
      refuse(fmt::format("{} has to be declared before steps, after, reads and writes", name));
    if (name == "step") refuse("the name step is reserved for the number of a step");
    for (const auto& [known, value] : made_.sizes_) {
      if (known == name) refuse(fmt::format("{} is declared twice", name));
    }
    for (const axis& known : made_.axes_) {
      if (known.name == name) refuse(fmt::format("{} is declared twice", name));
    }
  }

  /// Parses an expression over sizes; with `is_of_block`, also over axes and the step.
  select::expression expression(const std::string& text, bool is_of_block) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : made_.sizes_) names.push_back(name);
    if (is_of_block) {
      for (const axis& a : made_.axes_) names.push_back(a.name);
      names.emplace_back("step");
    }
    try {
      return select::expression::parse(text, names);
    } catch (const error& wrong) {
      refuse(wrong.what());
    }
  }
  double number(const std::string& text) const {
    std::vector<double> values;
    for (const auto& [name, value] : made_.sizes_) values.push_back(value);
    const double value = expression(text, false).value(values);
    if (!std::isfinite(value)) refuse(fmt::format("{} is {}", text, value));
    return value;
  }

  void finish(int line) {
    for (const auto& entry : given_) {
      const std::string& name = entry.first;
      const bool known = std::any_of(made_.sizes_.begin(), made_.sizes_.end(),
                                     [&](const auto& s) { return s.first == name; });
      if (!known) {
        std::string names;
        for (const auto& [other, v] : made_.sizes_) names += (names.empty() ? "" : ", ") + other;
        refuse(fmt::format("the kernel has no size {}; its sizes are {}", name, names));
      }
    }
    if (made_.axes_.empty()) refuse("there is no axis; a grid needs one: axis NAME = X");
    if (made_.rectangles_.empty()) refuse("nothing is read or written; blocks share nothing");
    double blocks = 1;
    for (const axis& a : made_.axes_) blocks *= a.extent;
    if (blocks > (1 << 24))
      refuse(fmt::format("{} blocks, more than the {} that can be simulated; take smaller sizes",
                         blocks, 1 << 24));
    made_.blocks_ = static_cast<int>(blocks);
    check_blocks();
    made_.choose_granules(line, origin_);
  }

  /// Replaces each rectangle that moves unevenly by one rectangle for each step.
  void unroll(const std::vector<bool>& is_uneven, int steps) {
    constexpr int most_unrolled = 64;
    std::vector<kernel::rectangle> unrolled;
    for (std::size_t r = 0; r < made_.rectangles_.size(); ++r) {
      kernel::rectangle next = made_.rectangles_[r];
      if (!is_uneven[r]) {
        unrolled.push_back(std::move(next));
        continue;
      }
      line_ = rectangle_lines_[r];
      if (steps > most_unrolled) {
        refuse(
            fmt::format("{} has to advance by the same whole number with each step, and sizes "
                        "may not change with steps, if there are more than {} steps",
                        next.bounds[0].text(), most_unrolled));
      }
      next.when = moment::given_step;
      for (next.given_step = 0; next.given_step < steps; ++next.given_step)
        unrolled.push_back(next);
    }
    made_.rectangles_ = std::move(unrolled);
    line_ = 0;
  }

  /// Checks at most 200 blocks: few enough steps, finite bounds. Accesses that do not move by the
  /// same distance with each step become one access for each step.
  void check_blocks() {
    std::vector<bool> is_uneven(made_.rectangles_.size());
    int most_steps = 1;
    const int count = std::min(made_.blocks_, 200);
    const int first_steps = made_.steps(0);
    for (int i = 0; i < count; ++i) {
      const int block =
          count == 1 ? 0 : static_cast<int>(std::int64_t{made_.blocks_ - 1} * i / (count - 1));
      const int steps = made_.steps(block);
      if (steps > 10000000) refuse(fmt::format("block {} has {} steps, too many", block, steps));
      made_.has_equal_steps_ = made_.has_equal_steps_ && steps == first_steps;
      most_steps = std::max(most_steps, steps);
      const std::vector<double> at_0 = made_.values(block, 0);
      const std::vector<double> at_1 = made_.values(block, 1);
      const std::vector<double> at_end = made_.values(block, steps - 1);
      for (std::size_t r = 0; r < made_.rectangles_.size(); ++r) {
        line_ = rectangle_lines_[r];
        for (std::size_t b = 0; b < 4; ++b) {
          const select::expression& e = made_.rectangles_[r].bounds[b];
          const double from = e.value(at_0);
          const double to = e.value(at_end);
          if (!std::isfinite(from) || !std::isfinite(to) || std::abs(from) > 1e15 ||
              std::abs(to) > 1e15)
            refuse(fmt::format("{} is {} in block {}", e.text(), from, block));
          const bool moves = made_.rectangles_[r].when == moment::every_step;
          const double each = b % 2 == 0 ? e.value(at_1) - from : 0;
          // Movement can be even at the first and the last step, and not in between.
          for (int step = 0; moves && step < std::min(steps, 256); ++step) {
            const double value = e.value(made_.values(block, step));
            if (std::abs(from + each * step - value) > 0.5) is_uneven[r] = true;
          }
          const bool is_even = std::abs(from + each * (steps - 1) - to) <= 0.5 &&
                               std::abs(each - std::round(each)) < 1e-6;
          if (steps > 1 && moves && !is_even) is_uneven[r] = true;
          if (b % 2 == 1 && !(from >= 0))
            refuse(
                fmt::format("{} is {} in block {}; it has to be 0 or more", e.text(), from, block));
        }
      }
      line_ = 0;
    }
    if (std::ranges::find(is_uneven, true) != is_uneven.end()) unroll(is_uneven, most_steps);
  }

  std::string origin_;
  const kernel::sizes& given_;
  kernel made_;
  int line_ = 0;
  std::vector<int> rectangle_lines_;
};

kernel kernel::read(std::string_view text, std::string_view origin, const sizes& given, int line) {
  return kernel_reader(origin, given).read(text, line);
}

}  // namespace untax::locality
