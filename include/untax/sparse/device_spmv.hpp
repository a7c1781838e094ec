#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/sparse/ways.hpp>

namespace untax::sparse {

/// A view of a matrix in compressed rows (CSR) in memory of the current device. Value is float or
/// double, Offset int32_t or int64_t. Offsets have to ascend from 0, and all columns have to exist;
/// this is not checked.
template <class Value, class Offset>
struct device_csr {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t elements = 0;
  const Offset* offsets = nullptr;  ///< rows + 1 of them
  const std::int32_t* columns = nullptr;
  const Value* values = nullptr;
};

template <class Value>
class device_kernel;

/// A matrix that is prepared for one algorithm that multiplies it by vectors, on the current
/// device. Algorithms with CSR read the caller's matrix, so it has to outlive this object; the
/// others have a copy.
///
/// Adaptive by rows: Greathouse, Daga, Efficient sparse matrix-vector multiplication on GPUs using
/// the CSR storage format, SC 2014. Merge-path and SELL-P: as in <untax/sparse/spmv.hpp>.
template <class Value, class Offset>
class device_spmv {
 public:
  /// Converts the matrix on `stream`, which has to outlive this object, and waits for it. Throws
  /// `invalid_argument` for sizes below 0, and `out_of_memory`. Throws `unsupported` without CUDA,
  /// if ELL would be padded too much, for rows that a format cannot number, and for ways of
  /// cuSPARSE without cuSPARSE or for a matrix without elements.
  device_spmv(const device_csr<Value, Offset>& matrix, spmv_kernel kernel, stream_ref stream);
  /// No run may be in progress on another stream.
  ~device_spmv();
  device_spmv(device_spmv&&) noexcept;
  device_spmv& operator=(device_spmv&&) noexcept;

  /// y = alpha A x + beta y. It is asynchronous on `stream`, and can be captured in a CUDA graph.
  /// If beta is 0, y is not read. x and y are in memory of the device and do not overlap: x has as
  /// many elements as A has columns, y as many as rows. Runs of one object take turns, also on
  /// several streams and in graphs; one thread at a time calls it.
  void run(Value alpha, const Value* x, Value beta, Value* y, stream_ref stream) const;

  /// The seconds that the constructor took to convert, with allocation and waiting for the device.
  [[nodiscard]] double setup_seconds() const noexcept { return setup_seconds_; }
  [[nodiscard]] spmv_kernel which() const noexcept { return which_; }

 private:
  spmv_kernel which_;
  double setup_seconds_ = 0;
  std::unique_ptr<device_kernel<Value>> work_;
};

/// Statistics of the lengths of rows that need no sorting.
struct row_bounds {
  std::int64_t shortest = 0;
  std::int64_t longest = 0;
  double variance = 0;
  std::int64_t padded = 0;  ///< elements that SELL-P stores
};

/// Computes the bounds in one pass over the offsets, which are in memory of the device, and waits
/// for the stream. Throws `out_of_memory`, and `unsupported` without CUDA.
template <class Offset>
[[nodiscard]] row_bounds bounds_of_rows(std::int64_t rows, const Offset* offsets,
                                        stream_ref stream);

/// "cuSPARSE 12.6.2", or the reason why it cannot be used. The first call loads it.
[[nodiscard]] const std::string& cusparse_text();

}  // namespace untax::sparse
