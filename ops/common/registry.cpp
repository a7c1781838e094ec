#include "ops/common/registry.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "ops/operators.hpp"

namespace untax {

const std::vector<operator_entry>& operators() {
  static const std::vector<operator_entry> entries = entries_of<operator_entry>();
  return entries;
}

const operator_entry* find_operator(std::string_view name) {
  const auto place = std::ranges::find(operators(), name, &operator_entry::name);
  return place != operators().end() ? &*place : nullptr;
}

const operator_entry& operator_named(std::string_view name) {
  if (const operator_entry* entry = find_operator(name)) return *entry;
  std::string known;
  for (const auto& entry : operators()) known += (known.empty() ? "" : ", ") + entry.name;
  throw error(errc::invalid_argument,
              fmt::format("there is no operator \"{}\"; there are {}", name, known));
}

}  // namespace untax
