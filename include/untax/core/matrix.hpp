#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <untax/core/half.hpp>
#include <untax/core/types.hpp>

namespace untax {

/// A view of a row-major matrix in memory that it does not own. `stride` is the number of elements
/// from the start of a row to the start of the next one.
template <class Pointer>
struct basic_matrix {
  Pointer data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;
  dtype type = dtype::f32;

  basic_matrix() = default;
  /// Elements of a type known at run time; `row_stride` 0 means densely packed.
  basic_matrix(Pointer elements, dtype element_type, std::int64_t row_count, std::int64_t col_count,
               std::int64_t row_stride = 0)
      : data(elements),
        rows(row_count),
        cols(col_count),
        stride(row_stride == 0 ? col_count : row_stride),
        type(element_type) {}
  /// Elements of a type known at compile time. Those of other types, such as CUDA's, take the
  /// constructor above.
  template <class T>
  requires(matrix_element<std::remove_const_t<T>>&& std::is_convertible_v<T*, Pointer>)
      basic_matrix(T* elements, std::int64_t row_count, std::int64_t col_count,
                   std::int64_t row_stride = 0)
      : basic_matrix(elements, dtype_of<std::remove_const_t<T>>, row_count, col_count, row_stride) {
  }

  /// Bytes from the first element to the end of the last one.
  [[nodiscard]] std::size_t span_bytes() const noexcept {
    if (rows == 0 || cols == 0) return 0;
    return static_cast<std::size_t>((rows - 1) * stride + cols) * size_of(type);
  }
  [[nodiscard]] bool empty() const noexcept { return rows == 0 || cols == 0; }
};

/// A view through which elements can be written.
using matrix = basic_matrix<void*>;
/// A view that only reads.
using const_matrix = basic_matrix<const void*>;

/// Makes a view that only reads, of the same matrix.
[[nodiscard]] inline const_matrix as_const(const matrix& m) noexcept {
  return {m.data, m.type, m.rows, m.cols, m.stride};
}

}  // namespace untax
