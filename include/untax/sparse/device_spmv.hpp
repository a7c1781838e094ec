#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/sparse/ways.hpp>

namespace untax::sparse {

/// A matrix by compressed rows in memory of the current device. Value is float or double, Offset
/// int32_t or int64_t. Rows begin where the one before ends, the first one at 0, and columns exist:
/// this is not looked at.
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

/// A matrix made ready for one way to multiply it by vectors on the current device. Ways by CSR
/// read the matrix where it lies, which has to outlive this; the others have a copy.
///
/// Adaptive by rows: Greathouse, Daga, Efficient sparse matrix-vector multiplication on GPUs using
/// the CSR storage format, SC 2014. Merge-path and SELL-P: as in <untax/sparse/spmv.hpp>.
template <class Value, class Offset>
class device_spmv {
 public:
  /// Converts, on `stream`, which has to outlive this, and waits for it. Throws `invalid_argument`
  /// for sizes below 0, `unsupported` where ELL would be padded too much, for rows that a format
  /// cannot number, where cuSPARSE is not there and without CUDA, `out_of_memory`.
  device_spmv(const device_csr<Value, Offset>& matrix, spmv_kernel kernel, stream_ref stream);
  /// When nothing of it runs any more on other streams.
  ~device_spmv();
  device_spmv(device_spmv&&) noexcept;
  device_spmv& operator=(device_spmv&&) noexcept;

  /// y = alpha A x + beta y, asynchronous; can be captured. Where beta is 0, y is not read. Of
  /// memory of the device, x has as many elements as A has columns, y as many as rows, and they do
  /// not overlap. Runs of one object follow each other.
  void run(Value alpha, const Value* x, Value beta, Value* y, stream_ref stream) const;

  /// What the constructor took to convert, memory and waiting for the device included.
  [[nodiscard]] double setup_seconds() const noexcept { return setup_seconds_; }
  [[nodiscard]] spmv_kernel which() const noexcept { return which_; }

 private:
  spmv_kernel which_;
  double setup_seconds_ = 0;
  std::unique_ptr<device_kernel<Value>> work_;
};

/// What can be gathered about rows without sorting them.
struct row_bounds {
  std::int64_t shortest = 0;
  std::int64_t longest = 0;
  double variance = 0;
  std::int64_t padded = 0;  ///< elements that SELL-P stores
};

/// One pass over the offsets, which waits for the stream. Throws `out_of_memory`, and `unsupported`
/// without CUDA.
template <class Offset>
[[nodiscard]] row_bounds bounds_of_rows(std::int64_t rows, const Offset* offsets,
                                        stream_ref stream);

/// "cuSPARSE 12.6.2", or why it cannot be used. Loads it the first time.
[[nodiscard]] const std::string& cusparse_text();

}  // namespace untax::sparse
