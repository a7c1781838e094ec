#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <untax/core/array_view.hpp>
#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>

#include "ops/common/spec.hpp"

namespace untax {

/// An operand that a caller passes to a run. `stride` is the number of elements from row to row; 0
/// if there are no gaps.
struct operand_value {
  std::string_view name;
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;
  element type = element::f32;
};

/// The operands of a run by their names. Operands that a spec marks as optional may be missing, or
/// have no data. The functions throw `invalid_argument` for an operand that is missing, and for one
/// with elements of another kind.
class operand_values {
 public:
  /// Throws `invalid_argument` for a name that `shapes` does not have. `values` have to outlive
  /// this.
  operand_values(std::span<const operand_value> values, std::span<const operand_shape> shapes);

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] const_matrix read(std::string_view name) const;
  [[nodiscard]] matrix written(std::string_view name) const;
  /// All elements of an operand in one row; gaps between rows are refused.
  [[nodiscard]] const_array_view read_array(std::string_view name) const;
  [[nodiscard]] array_view written_array(std::string_view name) const;
  /// The address of an operand without gaps, which has to have the type of its shape, and its
  /// extents or, if these differ between runs, `rows` and `cols`. Null for an optional operand that
  /// is missing.
  template <class T>
  [[nodiscard]] T* elements(std::string_view name, std::optional<std::int64_t> rows = {},
                            std::optional<std::int64_t> cols = {}) const {
    return static_cast<T*>(dense(name, rows, cols));
  }

 private:
  [[nodiscard]] const operand_value* find(std::string_view name) const;
  [[nodiscard]] const operand_value& needed(std::string_view name) const;
  [[nodiscard]] void* dense(std::string_view name, std::optional<std::int64_t> rows,
                            std::optional<std::int64_t> cols) const;

  std::span<const operand_value> values_;
  std::span<const operand_shape> shapes_;
};

}  // namespace untax
