#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "raise.hpp"

namespace untax::python {

/// A field of a structure of the C ABI, which Python passes by its name.
struct field {
  const char* name;
  std::size_t offset;
  void (*set)(void* at, nb::handle value);
};

template <class T>
void set_field(void* at, nb::handle value) {
  const T converted = nb::cast<T>(value);
  std::memcpy(at, &converted, sizeof converted);
}

#define UNTAX_FIELD(structure, member)                                                    \
  ::untax::python::field {                                                                \
#member, offsetof(structure, member),                                                 \
        &::untax::python::set_field < std::remove_cvref_t < decltype(structure::member)>> \
  }

/// A structure with the fields that `given` names; all other fields are zero.
template <class Structure>
[[nodiscard]] Structure filled(const nb::dict& given, std::span<const field> fields) {
  Structure s{};
  s.size = sizeof s;
  for (const auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const field* match = nullptr;
    std::string known;
    for (const field& f : fields) {
      if (name == f.name) match = &f;
      known += (known.empty() ? "" : ", ") + std::string(f.name);
    }
    if (match == nullptr) refuse("there is no " + name + "; there are " + known);
    try {
      match->set(reinterpret_cast<char*>(&s) + match->offset, value);
    } catch (const nb::cast_error&) {
      refuse(name + " is " + nb::cast<std::string>(nb::repr(value)) + "; it has to be a number");
    }
  }
  return s;
}

}  // namespace untax::python
