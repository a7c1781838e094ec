#pragma once

#include "engines/gpu/sparse/device_array.hpp"
#include "engines/gpu/sparse/kernel.hpp"

namespace untax::sparse {

/// The row of each element. Throws `unsupported` for more rows than 32 bits count.
template <class Value, class Offset>
[[nodiscard]] device_array<std::int32_t> rows_of_elements(const device_csr<Value, Offset>& m,
                                                          cudaStream_t stream);

/// Rows a slice of SELL-P: a warp's.
constexpr int slice_rows = 32;

/// Rows in slices, each padded to its longest row and stored by columns: element i of row r of the
/// slice s is at begins[s] + i * slice_rows + r % slice_rows. Padding is in column -1, its value 0.
template <class Value>
struct slices {
  std::int64_t count = 0;   ///< of slices
  std::int64_t stored = 0;  ///< elements, padding included
  device_array<std::int64_t> begins;
  device_array<std::int32_t> columns;
  device_array<Value> values;
};

/// Begins of slices in 32 bits. Throws `unsupported` where these do not count them.
template <class Value>
[[nodiscard]] device_array<std::int32_t> narrow_begins(const slices<Value>& from,
                                                       cudaStream_t stream);

/// Slices that are as wide as their longest row, or as wide as the longest row of all, which is
/// ELL. Waits for the stream. Throws `unsupported` where ELL would be padded too much.
template <class Value, class Offset>
[[nodiscard]] slices<Value> slices_of(const device_csr<Value, Offset>& m, bool all_as_wide,
                                      cudaStream_t stream);

}  // namespace untax::sparse
