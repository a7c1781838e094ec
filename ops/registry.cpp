#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "ops/collectives_common/registry.hpp"
#include "ops/common/registry.hpp"
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

const std::vector<collective_entry>& collectives() {
  static const std::vector<collective_entry> entries = entries_of<collective_entry>();
  return entries;
}

const collective_entry& collective_named(std::string_view name) {
  std::string known;
  for (const collective_entry& entry : collectives()) {
    if (entry.name == name) return entry;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  throw error(errc::invalid_argument,
              fmt::format("there is no collective \"{}\"; there are {}", name, known));
}

}  // namespace untax
