// docs/operators.md is what the specs of the operators say. UNTAX_WRITE_OPERATORS=1 writes it anew.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/operators.hpp"

namespace {

using namespace untax;

/// The values that a field takes, as a table of the page has them.
std::string values_of(const field& f) {
  std::string words;
  for (const field_word& word : f.words)
    words += fmt::format("{}`{}`", words.empty() ? "" : ", ", word.name);
  if (!words.empty()) return words;
  switch (f.kind) {
    case field_kind::flag:
      return "yes or no";
    case field_kind::real:
      return "a number";
    case field_kind::integers:
      return "whole numbers";
    default:
      return f.most < std::numeric_limits<std::int32_t>::max()
                 ? fmt::format("{} to {}", f.least, f.most)
                 : fmt::format("{} or more", f.least);
  }
}

std::string place_of(const field& f) {
  if (f.place == field_place::host) return "; of the host only";
  return f.place == field_place::gpus ? "; of GPUs only" : "";
}

std::string table_of(std::string_view title, std::span<const field> table,
                     std::span<const std::string_view> without) {
  std::string text = fmt::format("| {} | values | |\n|---|---|---|\n", title);
  for (const field& f : table) {
    if (std::ranges::find(without, f.name) != without.end()) continue;
    text += fmt::format("| `{}` | {} | {}{} |\n", f.name, values_of(f), f.help, place_of(f));
  }
  return text + "\n";
}

template <class Operator>
std::string operands_of() {
  using spec_type = spec_of<Operator>;
  std::string reads;
  std::string writes;
  for (const operand_shape& shape : spec_type::operands(spec_type::example, 2, 0)) {
    std::string& list = shape.is_written() ? writes : reads;
    list += fmt::format("{}`{}`{}", list.empty() ? "" : ", ", shape.name,
                        shape.is_optional() ? " (may be missing)" : "");
  }
  return fmt::format("A run reads {} and writes {}.\n\n", reads, writes);
}

std::string page() {
  std::string text =
      "# Operators, their fields and operands\n\n"
      "This page is made from the specs, `ops/<operator>/spec.hpp`, by a test. The names are those "
      "of the\n"
      "C ABI, of Python, where `type` is also `dtype`, and of `untax run`, with dashes in "
      "front.\n\n";
  library_operators::for_each([&]<class Operator>() {
    const operator_spec& operation = spec<Operator>;
    text += fmt::format("## {}\n\n{}. [More](../ops/{}/README.md)\n\n", operation.name,
                        operation.summary, operation.name);
    text += operands_of<Operator>();
    text += table_of("problem", operation.problem_fields, {});
    text += table_of("option", operation.option_fields, operation.without);
  });
  text.pop_back();
  return text;
}

TEST(operators_page, equals_the_specs) {
  const std::string expected = page();
  if (const char* write = std::getenv("UNTAX_WRITE_OPERATORS"); write != nullptr)
    std::ofstream("docs/operators.md") << expected;
  std::stringstream read;
  read << std::ifstream("docs/operators.md").rdbuf();
  EXPECT_EQ(read.str(), expected) << "UNTAX_WRITE_OPERATORS=1 writes it anew";
}

}  // namespace
