#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// What rows of a matrix are like. Known without a look at the offsets are rows, cols and nnz.
struct row_profile {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  double row_min = 0;  ///< lengths of rows, and their quantiles
  double row_q1 = 0;
  double row_median = 0;
  double row_q3 = 0;
  double row_max = 0;
  double row_mean = 0;
  double row_variance = 0;
  /// Elements of slices of 32 rows, each padded to its longest row; 0 if that is not known.
  double padded = 0;
};

/// One pass over the offsets, and one over the lengths that occur. A quantile is the length at that
/// part of the sorted rows, between two of them in proportion.
template <class Offset>
[[nodiscard]] row_profile profile_of(std::span<const Offset> offsets, std::int64_t cols);

/// The largest distance of an element's column from its row's place on the diagonal.
template <class Value, class Offset>
[[nodiscard]] std::int64_t band_of(const csr_view<Value, Offset>& matrix);

/// A profile with a name.
struct named_profile {
  std::string name;
  row_profile profile;
};

/// The records of a table with the columns group (may be missing), name, rows, cols, nnz, row_min,
/// row_q1, row_median, row_q3, row_max and row_variance. Throws `invalid_argument`.
[[nodiscard]] std::vector<named_profile> read_profiles(const std::string& path);

/// A matrix that is like another one of which only the profile is known: it has the same size,
/// number of elements, shortest and longest row, and about the same quartiles and variance. Rows
/// are in random order. Columns are drawn from those at most `band` away from the diagonal, or,
/// with 0, from all; a profile says nothing of that. The same seed makes the same twin everywhere.
/// Throws `invalid_argument` for a profile that no matrix has.
[[nodiscard]] csr<double, std::int64_t> twin_of(const row_profile& like, std::int64_t band,
                                                std::uint64_t seed);

}  // namespace untax::sparse
