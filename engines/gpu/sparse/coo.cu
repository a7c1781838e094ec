// COO by units of as many elements. Rows that several units have are added by atomics, in no order.

#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

#include "engines/gpu/sparse/formats.hpp"
#include "engines/gpu/sparse/segments.cuh"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

/// The number of each row that has elements, at its first one.
template <class Offset>
__global__ void mark_rows(const Offset* offsets, std::int32_t rows, std::int32_t* marks) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * unit_threads + threadIdx.x;
  if (row < rows && offsets[row] < offsets[row + 1])
    marks[offsets[row]] = static_cast<std::int32_t>(row);
}

template <class Value>
__global__ void scale(std::int64_t rows, Value beta, Value* y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * unit_threads + threadIdx.x;
  if (row < rows) y[row] = beta == Value(0) ? Value(0) : beta * y[row];
}

template <class Value>
__global__ void __launch_bounds__(unit_threads)
    coo_kernel(std::int64_t elements, const std::int32_t* rows, const std::int32_t* columns,
               const Value* values, spmv_vectors<Value> v) {
  __shared__ typename unit_terms<Value>::storage shared;
  unit_terms<Value> terms(shared);
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * unit_size;
  const std::int64_t left = elements - begin;
  const int count = left < unit_size ? static_cast<int>(left) : unit_size;
  terms.fetch(values + begin, columns + begin, count);
  const auto begins = [&](int term) {
    return term == 0 || rows[begin + term] != rows[begin + term - 1];
  };
  for (int i = static_cast<int>(threadIdx.x); i < count; i += unit_threads) {
    if (begins(i)) terms.begin_at(i);
  }
  terms.multiply(v.x);
  __syncthreads();
  terms.add_segments(count);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += unit_threads) {
    if (begins(i)) atomicAdd(v.y + rows[begin + i], v.alpha * terms.sum_from(i));
  }
}

template <class Value>
class coo final : public device_kernel<Value> {
 public:
  template <class Offset>
  coo(const device_csr<Value, Offset>& m, cudaStream_t stream)
      : rows_(m.rows),
        elements_(m.elements),
        blocks_(blocks_for(m.elements, unit_size)),
        row_of_(rows_of_elements(m, stream)),
        columns_(m.elements, stream),
        values_(m.elements, stream) {
    copy(columns_.data(), m.columns, stream);
    copy(values_.data(), m.values, stream);
  }

  void run(const spmv_vectors<Value>& v, cudaStream_t stream) const override {
    if (rows_ == 0) return;
    if (v.beta != Value(1)) {
      scale<<<blocks_for(rows_, unit_threads), unit_threads, 0, stream>>>(rows_, v.beta, v.y);
      gpu::require(cudaGetLastError(), "spmv cannot scale y");
    }
    if (elements_ == 0) return;
    coo_kernel<<<blocks_, unit_threads, 0, stream>>>(elements_, row_of_.data(), columns_.data(),
                                                     values_.data(), v);
    gpu::require(cudaGetLastError(), "spmv by COO cannot start");
  }

 private:
  template <class T>
  void copy(T* to, const T* from, cudaStream_t stream) {
    if (elements_ == 0) return;
    gpu::require(cudaMemcpyAsync(to, from, static_cast<std::size_t>(elements_) * sizeof(T),
                                 cudaMemcpyDeviceToDevice, stream),
                 "a sparse matrix cannot be copied");
  }

  std::int64_t rows_;
  std::int64_t elements_;
  unsigned blocks_;
  device_array<std::int32_t> row_of_;
  device_array<std::int32_t> columns_;
  device_array<Value> values_;
};

}  // namespace

template <class Value, class Offset>
device_array<std::int32_t> rows_of_elements(const device_csr<Value, Offset>& m,
                                            cudaStream_t stream) {
  if (m.rows > 0x7fffffff)
    throw error(errc::unsupported,
                fmt::format("COO numbers rows with 32 bits, and there are {}", m.rows));
  device_array<std::int32_t> made(m.elements, stream);
  if (m.elements == 0) return made;
  gpu::require(cudaMemsetAsync(made.data(), 0,
                               static_cast<std::size_t>(m.elements) * sizeof(std::int32_t), stream),
               "rows of a sparse matrix cannot be numbered");
  mark_rows<<<blocks_for(m.rows, unit_threads), unit_threads, 0, stream>>>(
      m.offsets, static_cast<std::int32_t>(m.rows), made.data());
  gpu::require(cudaGetLastError(), "rows of a sparse matrix cannot be numbered");
  with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(scratch, bytes, made.data(), made.data(),
                                          cuda::maximum<>{}, m.elements, stream);
  });
  return made;
}

template <class Value, class Offset>
device_kernel_of<Value> make_device_coo(const device_csr<Value, Offset>& matrix,
                                        cudaStream_t stream) {
  return std::make_unique<coo<Value>>(matrix, stream);
}

#define UNTAX_MAKE(Value, Offset)                                                               \
  template device_array<std::int32_t> rows_of_elements(const device_csr<Value, Offset>& matrix, \
                                                       cudaStream_t stream);                    \
  template device_kernel_of<Value> make_device_coo(const device_csr<Value, Offset>& matrix,     \
                                                   cudaStream_t stream);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
