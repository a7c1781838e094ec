#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include <untax/c/operator.h>
#include <untax/core/array_view.hpp>
#include <untax/core/error.hpp>
#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>

#include "failure.hpp"

namespace untax::c {

/// Copies a structure of the caller. Fields that an older caller does not have become zero. Throws
/// `invalid_argument` if `size` is not set, and `unsupported` if a newer caller has set a field
/// that this library does not know.
template <class T>
[[nodiscard]] T taken(const T* given, std::string_view name) {
  T known{};
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < sizeof size) {
    throw error(errc::invalid_argument,
                fmt::format("size of {} is {}; set it to sizeof({}), which is {}", name, size, name,
                            sizeof(T)));
  }
  const auto* bytes = reinterpret_cast<const char*>(given);
  const auto set = [](char byte) { return byte != 0; };
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, set)) {
    throw error(errc::unsupported,
                fmt::format("{} has fields that this library, version {}, does not know", name,
                            untax_version()));
  }
  std::memcpy(&known, given, std::min(size, sizeof(T)));
  return known;
}

/// Like `taken`, but a null pointer gives a structure of zeros.
template <class T>
[[nodiscard]] T taken_if_given(const T* given, std::string_view name) {
  return given == nullptr ? T{} : taken(given, name);
}

/// Converts a caller's value to an enumeration. Throws `invalid_argument` if it is not 0 to `last`.
template <class Enum>
[[nodiscard]] Enum chosen(std::string_view name, std::int32_t value, Enum last) {
  const auto most = static_cast<std::int32_t>(last);
  if (value < 0 || value > most) {
    throw error(errc::invalid_argument,
                fmt::format("{} is {}; it can be 0 to {}", name, value, most));
  }
  return static_cast<Enum>(value);
}

[[nodiscard]] inline dtype type_of(std::string_view name, std::int32_t value) {
  static_assert(static_cast<int>(dtype::bf16) == untax_bf16);
  return chosen(name, value, dtype::bf16);
}

[[nodiscard]] inline const_matrix matrix_of(std::string_view name, const untax_const_matrix* m) {
  require(m, name);
  return {m->data, type_of(fmt::format("type of {}", name), m->type), m->rows, m->cols, m->stride};
}

[[nodiscard]] inline matrix matrix_of(std::string_view name, const untax_matrix* m) {
  require(m, name);
  return {m->data, type_of(fmt::format("type of {}", name), m->type), m->rows, m->cols, m->stride};
}

[[nodiscard]] inline const_array_view array_of(std::string_view name, const untax_const_array* a) {
  require(a, name);
  return {a->data, type_of(fmt::format("type of {}", name), a->type), a->count};
}

[[nodiscard]] inline array_view array_of(std::string_view name, const untax_array* a) {
  require(a, name);
  return {a->data, type_of(fmt::format("type of {}", name), a->type), a->count};
}

[[nodiscard]] inline untax_matrix c_matrix(const matrix& m) {
  return {m.data, m.rows, m.cols, m.stride, static_cast<std::int32_t>(m.type)};
}

[[nodiscard]] inline stream_ref stream_of(void* stream) {
  return static_cast<CUstream_st*>(stream);
}

}  // namespace untax::c
