#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include <untax/core/types.hpp>

#include "ops/common/field.hpp"
#include "reading.hpp"

// Structures of the C ABI by the tables of fields of the library: a structure has `size`, and
// behind it a member for each field of its table, in the same order.

namespace untax::c {

/// Calls visit(field, offset) for each field, with its offset in the structure. Returns the bytes
/// of the structure.
template <class Visit>
constexpr std::size_t lay_out(std::span<const field> table, const Visit& visit) {
  std::size_t end = sizeof(std::size_t);
  for (const field& f : table) {
    end = round_up(end, f.bytes);
    visit(f, end);
    end += f.bytes;
    if (f.kind == field_kind::integers) end = round_up(end, sizeof(void*)) + sizeof(void*);
  }
  return round_up(end, sizeof(std::size_t));
}

[[nodiscard]] constexpr std::size_t bytes_of_structure(std::span<const field> table) {
  return lay_out(table, [](const field& /*f*/, std::size_t /*offset*/) {});
}

/// Stores the fields of a structure in an object of the library. Throws `invalid_argument` for a
/// value that a field cannot have.
void store_fields(std::span<const field> table, const void* structure, void* object);

/// An object of the library with the fields of a caller's structure. Throws as `taken` and
/// `store_fields` do.
template <class Object, class Structure>
[[nodiscard]] Object converted(std::span<const field> table, const Structure* given,
                               std::string_view name) {
  const Structure known = taken(given, name);
  Object object;
  store_fields(table, &known, &object);
  return object;
}

}  // namespace untax::c
