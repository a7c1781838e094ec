#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include <untax/sparse/device_spmv.hpp>

#include "src/symmetric/stream_order.hpp"

namespace untax::sparse {

/// The operands of y = alpha A x + beta y.
template <class Value>
struct spmv_vectors {
  Value alpha;
  const Value* x;
  Value beta;
  Value* y;
};

/// Launches a product that uses memory of its own: after the product before it, also on another
/// stream and in graphs.
template <class Launch>
void in_order(const stream_order& order, cudaStream_t stream, const Launch& launch) {
  auto* const on = stream == nullptr ? cudaStreamLegacy : stream;
  order.begin(on);
  launch();
  order.end(on);
}

/// An implementation of one algorithm, with the data that it needs in addition to the matrix.
template <class Value>
class device_kernel {
 public:
  virtual ~device_kernel() = default;
  /// Launches the product; asynchronous.
  virtual void run(const spmv_vectors<Value>& vectors, cudaStream_t stream) const = 0;
};

template <class Value>
using device_kernel_of = std::unique_ptr<device_kernel<Value>>;

// Conversions are enqueued on the stream and may still be running when these functions return.

/// The algorithms whose units of work are rows.
template <class Value, class Offset>
[[nodiscard]] device_kernel_of<Value> make_by_rows(const device_csr<Value, Offset>& matrix,
                                                   const spmv_way& way);
template <class Value, class Offset>
[[nodiscard]] device_kernel_of<Value> make_adaptive(const device_csr<Value, Offset>& matrix,
                                                    cudaStream_t stream);
/// `how` is `path` or `elements`.
template <class Value, class Offset>
[[nodiscard]] device_kernel_of<Value> make_cut(const device_csr<Value, Offset>& matrix,
                                               unit_of_work how, cudaStream_t stream);
template <class Value, class Offset>
[[nodiscard]] device_kernel_of<Value> make_device_coo(const device_csr<Value, Offset>& matrix,
                                                      cudaStream_t stream);
/// ELL if `slices` is false, SELL-P otherwise.
template <class Value, class Offset>
[[nodiscard]] device_kernel_of<Value> make_device_padded(const device_csr<Value, Offset>& matrix,
                                                         bool slices, cudaStream_t stream);
/// One of cuSPARSE's algorithms. Throws `unsupported`.
template <class Value, class Offset>
[[nodiscard]] device_kernel_of<Value> make_cusparse(const device_csr<Value, Offset>& matrix,
                                                    spmv_kernel which, cudaStream_t stream);

}  // namespace untax::sparse
