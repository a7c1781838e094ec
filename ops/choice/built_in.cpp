#include "ops/choice/built_in.hpp"

#include "ops/choice/table.hpp"

namespace untax {

std::string joined(std::initializer_list<const char*> lines) {
  std::string text;
  for (const char* line : lines) text.append(line).append("\n");
  return text;
}

const std::vector<tuning_table>& built_in_tables() {
  static const std::vector<tuning_table> tables = [] {
    std::vector<tuning_table> parsed;
    for (const auto& [name, text] : built_in_texts()) parsed.push_back(parse_table(text, name));
    return parsed;
  }();
  return tables;
}

}  // namespace untax
