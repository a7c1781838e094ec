#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <utility>

#include <untax/core/half.hpp>
#include <untax/core/types.hpp>

namespace untax {

/// `count` elements that lie side by side in somebody else's memory.
template <class Pointer>
struct basic_elements {
  Pointer data = nullptr;
  std::int64_t count = 0;
  dtype type = dtype::f32;

  basic_elements() = default;
  /// Elements of a type known at run time.
  basic_elements(Pointer first, dtype element_type, std::int64_t size)
      : data(first), count(size), type(element_type) {}
  /// Elements of a type known at compile time.
  template <class T>
  requires(!std::is_void_v<T> && std::is_convertible_v<T*, Pointer>)
      basic_elements(T* first, std::int64_t size)
      : basic_elements(first, dtype_of<std::remove_const_t<T>>, size) {}
  /// All elements of a vector, an array or a span.
  template <std::ranges::contiguous_range R>
  requires(std::is_convertible_v<decltype(std::ranges::data(std::declval<R&>())), Pointer>)
      basic_elements(R&& all)  // NOLINT(*-explicit-*): op.run(in, out) with two vectors
      : basic_elements(std::ranges::data(all), static_cast<std::int64_t>(std::ranges::size(all))) {}

  [[nodiscard]] std::size_t size_bytes() const noexcept {
    return static_cast<std::size_t>(count) * size_of(type);
  }
};

using elements = basic_elements<void*>;
using const_elements = basic_elements<const void*>;

/// A view that only reads.
[[nodiscard]] inline const_elements as_const(const elements& e) noexcept {
  return {e.data, e.type, e.count};
}

}  // namespace untax
