#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <utility>

#include <untax/core/half.hpp>
#include <untax/core/types.hpp>

namespace untax {

/// A view of `count` contiguous elements in memory that it does not own.
template <class Pointer>
struct basic_array_view {
  Pointer data = nullptr;
  std::int64_t count = 0;
  dtype type = dtype::f32;

  basic_array_view() = default;
  /// Elements of a type known at run time.
  basic_array_view(Pointer first, dtype element_type, std::int64_t size)
      : data(first), count(size), type(element_type) {}
  /// Elements of a type known at compile time. Those of other types, such as CUDA's, take the
  /// constructor above.
  template <class T>
  requires(matrix_element<std::remove_const_t<T>>&& std::is_convertible_v<T*, Pointer>)
      basic_array_view(T* first, std::int64_t size)
      : basic_array_view(first, dtype_of<std::remove_const_t<T>>, size) {}
  /// All elements of a vector, an array or a span.
  template <std::ranges::contiguous_range R>
  requires(matrix_element<std::ranges::range_value_t<R>>&&
               std::is_convertible_v<decltype(std::ranges::data(std::declval<R&>())), Pointer>)
      // NOLINTNEXTLINE(*-explicit-*,*-forwarding-*): op.run(in, out) with two vectors
      basic_array_view(R&& range)
      : basic_array_view(std::ranges::data(range),
                         static_cast<std::int64_t>(std::ranges::size(range))) {}

  [[nodiscard]] std::size_t size_bytes() const noexcept {
    return static_cast<std::size_t>(count) * size_of(type);
  }
};

/// A view through which elements can be written.
using array_view = basic_array_view<void*>;
/// A view that only reads.
using const_array_view = basic_array_view<const void*>;

/// Makes a view that only reads, of the same elements.
[[nodiscard]] inline const_array_view as_const(const array_view& e) noexcept {
  return {e.data, e.type, e.count};
}

}  // namespace untax
