// COO with 128 elements per warp. Sums are added to y with atomics, in no fixed order.

#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

#include "engines/gpu/sparse/formats.hpp"
#include "engines/gpu/sparse/sums.cuh"
#include "engines/gpu/sparse/units.cuh"
#include "src/sparse/instantiate.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax::sparse {
namespace {

/// Stores the number of each row that has elements at its first element.
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

/// Consecutive elements per lane.
constexpr int lane_elements = 4;

/// Loads a lane's elements from `from`, of which only the first `left` exist; the rest become
/// `none`, or 0. `from` is aligned to `lane_elements` elements.
__device__ void read_four(const std::int32_t* from, std::int64_t left, std::int32_t none,
                          std::int32_t (&to)[lane_elements]) {
  if (left >= lane_elements) {
    const int4 four = read_once(reinterpret_cast<const int4*>(from));
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    return;
  }
  for (int k = 0; k < lane_elements; ++k) to[k] = k < left ? from[k] : none;
}
__device__ void read_four(const float* from, std::int64_t left, float (&to)[lane_elements]) {
  if (left >= lane_elements) {
    const float4 four = read_once(reinterpret_cast<const float4*>(from));
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    return;
  }
  for (int k = 0; k < lane_elements; ++k) to[k] = k < left ? from[k] : 0;
}
__device__ void read_four(const double* from, std::int64_t left, double (&to)[lane_elements]) {
  if (left >= lane_elements) {
    const double2 two = read_once(reinterpret_cast<const double2*>(from));
    const double2 more = read_once(reinterpret_cast<const double2*>(from) + 1);
    to[0] = two.x, to[1] = two.y, to[2] = more.x, to[3] = more.y;
    return;
  }
  for (int k = 0; k < lane_elements; ++k) to[k] = k < left ? from[k] : 0;
}

/// A warp adds 128 consecutive elements. A lane adds its terms of each row, a scan over the warp
/// combines the lanes that share a row, and atomics combine the warps that share a row.
template <class Value>
__global__ void __launch_bounds__(unit_threads)
    coo_kernel(std::int64_t elements, const std::int32_t* rows, const std::int32_t* columns,
               const Value* values, spmv_vectors<Value> v) {
  const std::int64_t begin =
      (static_cast<std::int64_t>(blockIdx.x) * unit_threads + threadIdx.x) * lane_elements;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (begin - lane * lane_elements >= elements) return;
  const std::int64_t left = elements - begin;
  std::int32_t row[lane_elements];
  std::int32_t column[lane_elements];
  Value term[lane_elements];
  // Elements beyond the last one count as zero terms of the last row.
  read_four(rows + begin, left, rows[elements - 1], row);
  read_four(columns + begin, left, -1, column);
  read_four(values + begin, left, term);
  Value factor[lane_elements];
#pragma unroll
  for (int k = 0; k < lane_elements; ++k)
    factor[k] = column[k] >= 0 ? __ldg(v.x + column[k]) : Value(0);
#pragma unroll
  for (int k = 0; k < lane_elements; ++k) term[k] = column[k] >= 0 ? term[k] * factor[k] : Value(0);
  // From here on, the scaled y of the kernel before is visible.
  cudaGridDependencySynchronize();
  const auto add = [&](std::int32_t to, Value sum) { atomicAdd(v.y + to, v.alpha * sum); };
  // `head`: the lane's first row, if it ends here. `sum`: its last row. Rows between are complete.
  Value head = 0;
  bool ends = false;
  Value sum = term[0];
#pragma unroll
  for (int k = 1; k < lane_elements; ++k) {
    if (row[k] == row[k - 1]) {
      sum += term[k];
      continue;
    }
    if (ends) {
      add(row[k - 1], sum);
    } else {
      head = sum;
      ends = true;
    }
    sum = term[k];
  }
  // Rows ascend, so lanes with the same last row have no other row between them.
  const std::int32_t last = row[lane_elements - 1];
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const std::int32_t its_last = __shfl_up_sync(whole_warp, last, distance);
    const Value its_sum = __shfl_up_sync(whole_warp, sum, distance);
    if (lane >= distance && its_last == last) sum += its_sum;
  }
  const std::int32_t last_before = __shfl_up_sync(whole_warp, last, 1);
  const Value sum_before = __shfl_up_sync(whole_warp, sum, 1);
  const std::int32_t first_behind = __shfl_down_sync(whole_warp, row[0], 1);
  if (ends) add(row[0], lane > 0 && last_before == row[0] ? head + sum_before : head);
  if (lane == 31 || first_behind != last) add(last, sum);
}

template <class Value>
class coo final : public device_kernel<Value> {
 public:
  template <class Offset>
  coo(const device_csr<Value, Offset>& m, cudaStream_t stream)
      : rows_(m.rows),
        elements_(m.elements),
        blocks_(blocks_for(m.elements, unit_threads * lane_elements)),
        row_of_(rows_of_elements(m, stream)),
        columns_(m.elements, stream),
        values_(m.elements, stream) {
    copy(columns_.data(), m.columns, stream);
    copy(values_.data(), m.values, stream);
  }

  void run(const spmv_vectors<Value>& v, cudaStream_t stream) const override {
    if (rows_ == 0) return;
    const bool scales = v.beta != Value(1);
    if (scales) {
      scale<<<blocks_for(rows_, unit_threads), unit_threads, 0, stream>>>(rows_, v.beta, v.y);
      gpu::require(cudaGetLastError(), "spmv cannot scale y");
    }
    if (elements_ == 0) return;
    // The kernel loads the matrix while y is still being scaled.
    gpu::start_pdl(scales, coo_kernel<Value>, static_cast<int>(blocks_), unit_threads, stream,
                   "spmv by COO cannot start", elements_, row_of_.data(), columns_.data(),
                   values_.data(), v);
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
