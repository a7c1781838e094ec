#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::sparse {

/// Elements of a sparse matrix one by one, in any order. What is there twice is added.
struct coordinates {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::int32_t> row;
  std::vector<std::int32_t> column;
  std::vector<double> value;

  [[nodiscard]] std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(value.size());
  }
};

/// A matrix by compressed rows, in memory of somebody else's: row r has the elements offsets[r] to
/// offsets[r + 1] - 1 of `columns` and `values`. Value is float or double, Offset int32_t or
/// int64_t.
template <class Value, class Offset>
struct csr_view {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::span<const Offset> offsets;  ///< rows + 1 of them
  std::span<const std::int32_t> columns;
  std::span<const Value> values;

  /// How many elements are stored.
  [[nodiscard]] std::int64_t size() const noexcept {
    return offsets.empty() ? 0 : static_cast<std::int64_t>(offsets.back());
  }
};

/// The same in memory of its own.
template <class Value, class Offset>
struct csr {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<Offset> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<Value> values;

  [[nodiscard]] csr_view<Value, Offset> view() const noexcept {
    return {rows, cols, offsets, columns, values};
  }
};

/// Throws `unsupported` if offsets of this type cannot count so many elements.
template <class Offset>
void require_offsets_for(std::int64_t elements) {
  if (elements <= std::numeric_limits<Offset>::max()) return;
  throw error(errc::unsupported,
              fmt::format("offsets of {} bits count to {}, and the matrix has {} elements; offsets "
                          "of 64 bits count them",
                          8 * sizeof(Offset), std::numeric_limits<Offset>::max(), elements));
}

/// Rows ascending, columns ascending within a row, equal places added. Throws `invalid_argument`
/// for elements outside of the matrix, `unsupported` for more than Offset can count.
template <class Value, class Offset>
[[nodiscard]] csr<Value, Offset> csr_of(const coordinates& from);

/// Throws `invalid_argument` unless sizes fit, offsets ascend and columns exist.
template <class Value, class Offset>
void require_valid(const csr_view<Value, Offset>& matrix);

}  // namespace untax::sparse
