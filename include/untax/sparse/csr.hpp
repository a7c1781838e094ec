#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::sparse {

/// The elements of a sparse matrix one by one, in any order. Elements at the same place are added.
/// Rows and columns count from 0.
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

/// A view of a matrix in compressed rows (CSR) in memory that it does not own. Row r has the
/// elements offsets[r] to offsets[r + 1] - 1 of `columns` and `values`. Value is float or double,
/// Offset int32_t or int64_t.
template <class Value, class Offset>
struct csr_view {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::span<const Offset> offsets;  ///< rows + 1 of them
  std::span<const std::int32_t> columns;
  std::span<const Value> values;

  /// The number of stored elements.
  [[nodiscard]] std::int64_t size() const noexcept {
    return offsets.empty() ? 0 : static_cast<std::int64_t>(offsets.back());
  }
};

/// A matrix in compressed rows that owns its memory.
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

/// Throws `unsupported` if offsets of this type cannot count `elements` elements.
template <class Offset>
void require_offsets_for(std::int64_t elements) {
  if (elements <= std::numeric_limits<Offset>::max()) return;
  throw error(errc::unsupported,
              fmt::format("offsets of {} bits count to {}, and the matrix has {} elements; offsets "
                          "of 64 bits count them",
                          8 * sizeof(Offset), std::numeric_limits<Offset>::max(), elements));
}

/// Converts a matrix: rows ascend, columns ascend within a row, and elements at the same place are
/// added. Throws `invalid_argument` for elements outside of the matrix, and `unsupported` for more
/// elements than Offset can count.
template <class Value, class Offset>
[[nodiscard]] csr<Value, Offset> csr_of(const coordinates& from);

/// Throws `invalid_argument` unless sizes fit, offsets ascend from 0, and all columns exist.
template <class Value, class Offset>
void require_valid(const csr_view<Value, Offset>& matrix);

}  // namespace untax::sparse
