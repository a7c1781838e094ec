#include <untax/sparse/device_spmv.hpp>

#include <chrono>

#include "engines/gpu/sparse/device_array.hpp"
#include "engines/gpu/sparse/kernel.hpp"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

cudaStream_t stream_of(stream_ref on) { return static_cast<cudaStream_t>(on.handle); }

template <class Value, class Offset>
device_kernel_of<Value> made(const device_csr<Value, Offset>& m, spmv_kernel which,
                             cudaStream_t stream) {
  const spmv_way& way = way_of(which);
  switch (way.unit) {
    case unit_of_work::row:
      return make_by_rows(m, way);
    case unit_of_work::whole_rows:
      return make_adaptive(m, stream);
    case unit_of_work::path:
      return make_cut(m, way.unit, stream);
    case unit_of_work::elements:
      if (which == spmv_kernel::coo) return make_device_coo(m, stream);
      return make_cut(m, way.unit, stream);
    case unit_of_work::slice:
      return make_device_padded(m, which == spmv_kernel::sellp, stream);
    case unit_of_work::library:
      return make_cusparse(m, which, stream);
  }
  throw error(errc::internal, "no such kernel");
}

}  // namespace

template <class Value, class Offset>
device_spmv<Value, Offset>::device_spmv(const device_csr<Value, Offset>& matrix, spmv_kernel kernel,
                                        stream_ref stream)
    : which_(kernel) {
  if (matrix.rows < 0 || matrix.cols < 0 || matrix.elements < 0) {
    throw error(errc::invalid_argument,
                fmt::format("a sparse matrix of {} x {} with {} elements; these are 0 or more",
                            matrix.rows, matrix.cols, matrix.elements));
  }
  const auto begin = std::chrono::steady_clock::now();
  work_ = made(matrix, kernel, stream_of(stream));
  gpu::require(cudaStreamSynchronize(stream_of(stream)), "a sparse matrix cannot be converted");
  setup_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
template <class Value, class Offset>
device_spmv<Value, Offset>::~device_spmv() = default;
template <class Value, class Offset>
device_spmv<Value, Offset>::device_spmv(device_spmv&&) noexcept = default;
template <class Value, class Offset>
device_spmv<Value, Offset>& device_spmv<Value, Offset>::operator=(device_spmv&&) noexcept = default;

template <class Value, class Offset>
void device_spmv<Value, Offset>::run(Value alpha, const Value* x, Value beta, Value* y,
                                     stream_ref stream) const {
  work_->run({alpha, x, beta, y}, stream_of(stream));
}

#define UNTAX_SPMV(Value, Offset) template class device_spmv<Value, Offset>;
UNTAX_SPARSE_TYPES(UNTAX_SPMV)
#undef UNTAX_SPMV

}  // namespace untax::sparse
