// CSR by units that may split rows: each unit has the same number of merge-path steps, or of
// elements. A second kernel adds a unit's partial sum of another unit's row, in a fixed order, so
// that the bits of y depend on the matrix alone.

#include "engines/gpu/sparse/segments.cuh"
#include "src/sparse/instantiate.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax::sparse {
namespace {

/// `how` is `path`, where a row belongs to the unit in which it ends, or `elements`, where it
/// belongs to the unit in which it begins.
template <unit_of_work how, class Value, class Offset>
__global__ void __launch_bounds__(unit_threads)
    cut_kernel(device_csr<Value, Offset> m, const path_point* begins, spmv_vectors<Value> v,
               device_carry<Value>* carries) {
  __shared__ typename unit_terms<Value>::storage shared;
  unit_terms<Value> terms(shared);
  const path_point begin = begins[blockIdx.x];
  const path_point end = begins[blockIdx.x + 1];
  const int count = static_cast<int>(end.entries - begin.entries);
  // Where the elements of a row begin in this unit, and where they end.
  const auto from = [&](std::int64_t row) {
    const std::int64_t at = m.offsets[row];
    return static_cast<int>((at > begin.entries ? at : begin.entries) - begin.entries);
  };
  const auto to = [&](std::int64_t row) {
    const std::int64_t at = m.offsets[row + 1];
    return static_cast<int>((at < end.entries ? at : end.entries) - begin.entries);
  };
  terms.fetch(m.values + begin.entries, m.columns + begin.entries, count);
  // By path, row end.rows may end in a later unit. By elements, row begin.rows - 1 may end here.
  const bool open = how == unit_of_work::path && end.rows < m.rows;
  for (std::int64_t row = begin.rows + threadIdx.x; row < end.rows + (open ? 1 : 0);
       row += unit_threads) {
    const int first = from(row);
    if (first < to(row)) terms.begin_at(first);
  }
  if (threadIdx.x == 0 && count > 0) terms.begin_at(0);
  terms.multiply(v.x);
  __syncthreads();
  terms.add_segments(count);
  for (std::int64_t row = begin.rows + threadIdx.x; row < end.rows; row += unit_threads) {
    const int first = from(row);
    put(v, row, first < to(row) ? terms.sum_from(first) : Value(0));
  }
  if (threadIdx.x > 0) return;
  device_carry<Value> rest{-1, 0};
  if constexpr (how == unit_of_work::path) {
    if (open && from(end.rows) < to(end.rows)) rest = {end.rows, terms.sum_from(from(end.rows))};
  } else {
    if (count > 0 && m.offsets[begin.rows] > begin.entries)
      rest = {begin.rows - 1, terms.sum_from(0)};
  }
  carries[blockIdx.x] = rest;
}

/// The warp of the first carry of a row adds all carries of this row, which are consecutive.
template <class Value>
__global__ void __launch_bounds__(unit_threads)
    add_carries(const device_carry<Value>* carries, std::int64_t count, spmv_vectors<Value> v) {
  cudaGridDependencySynchronize();
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * unit_threads + threadIdx.x) / 32;
  if (first >= count) return;
  const std::int64_t row = carries[first].row;
  if (row < 0 || (first > 0 && carries[first - 1].row == row)) return;
  Value sum = 0;
  for (std::int64_t i = first + threadIdx.x % 32; i < count && carries[i].row == row; i += 32)
    sum += carries[i].sum;
  sum = sum_of_lanes(sum, 32);
  if (threadIdx.x % 32 == 0) v.y[row] = fma(v.alpha, sum, v.y[row]);
}

template <unit_of_work how, class Value, class Offset>
class cut final : public device_kernel<Value> {
 public:
  cut(const device_csr<Value, Offset>& matrix, cudaStream_t stream)
      : matrix_(matrix), units_(matrix, how, stream), carries_(units_.count(), stream) {}

  void run(const spmv_vectors<Value>& v, cudaStream_t stream) const override {
    if (units_.count() == 0) return;
    in_order(order_, stream, [&] { launch(v, stream); });
  }

 private:
  void launch(const spmv_vectors<Value>& v, cudaStream_t stream) const {
    cut_kernel<how>
        <<<units_.blocks(), unit_threads, 0, stream>>>(matrix_, units_.data(), v, carries_.data());
    gpu::require(cudaGetLastError(), "spmv cannot start");
    if (units_.count() == 1) return;
    gpu::start_pdl(true, add_carries<Value>,
                   static_cast<int>(blocks_for(32 * units_.count(), unit_threads)), unit_threads,
                   stream, "spmv cannot add what units have of others' rows", carries_.data(),
                   units_.count(), v);
  }

  device_csr<Value, Offset> matrix_;
  unit_begins units_;
  device_array<device_carry<Value>> carries_;
  stream_order order_;
};

}  // namespace

template <class Value, class Offset>
device_kernel_of<Value> make_cut(const device_csr<Value, Offset>& matrix, unit_of_work how,
                                 cudaStream_t stream) {
  if (how == unit_of_work::path)
    return std::make_unique<cut<unit_of_work::path, Value, Offset>>(matrix, stream);
  return std::make_unique<cut<unit_of_work::elements, Value, Offset>>(matrix, stream);
}

#define UNTAX_MAKE(Value, Offset)                                                    \
  template device_kernel_of<Value> make_cut(const device_csr<Value, Offset>& matrix, \
                                            unit_of_work how, cudaStream_t stream);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
