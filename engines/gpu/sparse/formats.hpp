#pragma once

#include "engines/gpu/sparse/device_array.hpp"
#include "engines/gpu/sparse/kernel.hpp"

namespace untax::sparse {

/// The row index of each element. Throws `unsupported` if a row index needs more than 32 bits.
template <class Value, class Offset>
[[nodiscard]] device_array<std::int32_t> rows_of_elements(const device_csr<Value, Offset>& m,
                                                          cudaStream_t stream);

/// Rows per slice of SELL-P, one for each lane of a warp.
constexpr int slice_rows = 32;

/// Rows in slices, each slice padded to its longest row and stored by columns: element i of row r
/// in slice s is at begins[s] + i * slice_rows + r % slice_rows. Padding has column -1 and value 0.
template <class Value>
struct slices {
  std::int64_t count = 0;   ///< number of slices
  std::int64_t stored = 0;  ///< elements, padding included
  device_array<std::int64_t> begins;
  device_array<std::int32_t> columns;
  device_array<Value> values;
};

/// Slice offsets in 32 bits. Throws `unsupported` if 32 bits do not suffice.
template <class Value>
[[nodiscard]] device_array<std::int32_t> narrow_begins(const slices<Value>& from,
                                                       cudaStream_t stream);

/// SELL-P: each slice is as wide as its longest row. ELL, with `all_as_wide`: as wide as the
/// longest row of all. Synchronises the stream. Throws `unsupported` if ELL needs too much padding.
template <class Value, class Offset>
[[nodiscard]] slices<Value> slices_of(const device_csr<Value, Offset>& m, bool all_as_wide,
                                      cudaStream_t stream);

}  // namespace untax::sparse
