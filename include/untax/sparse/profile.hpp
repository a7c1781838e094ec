#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// A profile of the rows of a matrix. Only rows, cols and nnz are known without a pass over the
/// offsets.
struct row_profile {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  double row_min = 0;  ///< length of the shortest row; the next members are quantiles of the
                       ///< lengths of rows
  double row_q1 = 0;
  double row_median = 0;
  double row_q3 = 0;
  double row_max = 0;
  double row_mean = 0;
  double row_variance = 0;
  /// Elements of slices of 32 rows, each padded to its longest row; 0 if this is not known.
  double padded = 0;
};

/// Computes a profile in one pass over the offsets, and one over the lengths that occur. A quantile
/// is the length at that fraction of the sorted rows, interpolated between two rows.
template <class Offset>
[[nodiscard]] row_profile profile_of(std::span<const Offset> offsets, std::int64_t cols);

/// The largest distance of an element's column from the diagonal in its row.
template <class Value, class Offset>
[[nodiscard]] std::int64_t band_of(const csr_view<Value, Offset>& matrix);

/// A profile with a name.
struct named_profile {
  std::string name;
  row_profile profile;
};

/// Reads profiles from a CSV file, which may be compressed by gzip, with the columns group (may be
/// missing), name, rows, cols, nnz, row_min, row_q1, row_median, row_q3, row_max and row_variance.
/// Throws `invalid_argument`.
[[nodiscard]] std::vector<named_profile> read_profiles(const std::string& path);

/// Makes a matrix that is similar to another one of which only the profile is known. It has the
/// same size, number of elements, shortest and longest row, and about the same quartiles and
/// variance. Rows are in random order. Columns, which a profile does not contain, are drawn from
/// those at most `band` away from the diagonal or, with 0, from all. The same seed gives the same
/// matrix on every machine. Throws `invalid_argument` for a profile that no matrix has.
[[nodiscard]] csr<double, std::int64_t> twin_of(const row_profile& like, std::int64_t band,
                                                std::uint64_t seed);

}  // namespace untax::sparse
