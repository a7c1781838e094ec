#include "ops/collectives_common/registry.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "ops/operators.hpp"

namespace untax {

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
