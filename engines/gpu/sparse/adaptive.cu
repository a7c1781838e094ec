// CSR by units of whole rows. A block multiplies the elements of a unit into shared memory, then a
// group of lanes adds each row: the fewer rows, the more lanes per row. A row that does not fit
// into shared memory is added by the whole block.

#include "engines/gpu/sparse/sums.cuh"
#include "engines/gpu/sparse/units.cuh"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

/// Lanes per row: the largest power of two up to 32 with which all rows fit in a block, at least 1.
__device__ int lanes_for(std::int64_t rows) {
  int lanes = 1;
  while (lanes < 32 && 2 * lanes * rows <= unit_threads) lanes *= 2;
  return lanes;
}

template <class Value, class Offset>
__global__ void __launch_bounds__(unit_threads)
    adaptive_kernel(device_csr<Value, Offset> m, const path_point* begins, spmv_vectors<Value> v) {
  __shared__ Value terms[unit_size];
  __shared__ Value warps[unit_threads / 32];
  const int thread = static_cast<int>(threadIdx.x);
  std::int64_t row = begins[blockIdx.x].rows;
  const std::int64_t behind = begins[blockIdx.x + 1].rows;
  std::int64_t begin = begins[blockIdx.x].entries;
  const std::int64_t end = begins[blockIdx.x + 1].entries;
  // Only the first row can be too long: all later rows lie within `unit_size` steps of the path.
  if (end - begin > unit_size) {
    const std::int64_t next = m.offsets[row + 1];
    const Value sum =
        sum_of_block<unit_threads>(sum_of_lane(m, v.x, begin, next, thread, unit_threads), warps);
    if (thread == 0) put(v, row, sum);
    ++row;
    begin = next;
  }
  const int count = static_cast<int>(end - begin);
  constexpr int each = unit_size / unit_threads;
  std::int32_t columns[each];
  Value values[each];
#pragma unroll
  for (int k = 0; k < each; ++k) {
    const int i = thread + k * unit_threads;
    columns[k] = i < count ? read_once(m.columns + begin + i) : -1;
    values[k] = i < count ? read_once(m.values + begin + i) : Value(0);
  }
  const int lanes = lanes_for(behind - row);
  const int groups = unit_threads / lanes;
  // The bounds of this thread's first row are loaded while the element loads are in flight.
  std::int64_t mine = row + thread / lanes;
  int first = mine < behind ? static_cast<int>(m.offsets[mine] - begin) : 0;
  int last = mine < behind ? static_cast<int>(m.offsets[mine + 1] - begin) : 0;
  Value factors[each];
#pragma unroll
  for (int k = 0; k < each; ++k) factors[k] = columns[k] >= 0 ? __ldg(v.x + columns[k]) : Value(0);
#pragma unroll
  for (int k = 0; k < each; ++k) {
    if (columns[k] >= 0) terms[thread + k * unit_threads] = values[k] * factors[k];
  }
  __syncthreads();
  // All lanes of a warp run the same number of iterations, since they exchange sums by shuffles.
  for (std::int64_t turn = row; turn < behind; turn += groups) {
    Value sum = 0;
    for (int i = first + thread % lanes; i < last; i += lanes) sum += terms[i];
    sum = sum_of_lanes(sum, lanes);
    if (mine < behind && thread % lanes == 0) put(v, mine, sum);
    mine += groups;
    first = mine < behind ? static_cast<int>(m.offsets[mine] - begin) : 0;
    last = mine < behind ? static_cast<int>(m.offsets[mine + 1] - begin) : 0;
  }
}

template <class Value, class Offset>
class adaptive final : public device_kernel<Value> {
 public:
  adaptive(const device_csr<Value, Offset>& matrix, cudaStream_t stream)
      : matrix_(matrix), units_(matrix, unit_of_work::whole_rows, stream) {}

  void run(const spmv_vectors<Value>& v, cudaStream_t stream) const override {
    if (units_.count() == 0) return;
    adaptive_kernel<<<units_.blocks(), unit_threads, 0, stream>>>(matrix_, units_.data(), v);
    gpu::require(cudaGetLastError(), "adaptive spmv cannot start");
  }

 private:
  device_csr<Value, Offset> matrix_;
  unit_begins units_;
};

}  // namespace

template <class Value, class Offset>
device_kernel_of<Value> make_adaptive(const device_csr<Value, Offset>& matrix,
                                      cudaStream_t stream) {
  return std::make_unique<adaptive<Value, Offset>>(matrix, stream);
}

#define UNTAX_MAKE(Value, Offset)                                                         \
  template device_kernel_of<Value> make_adaptive(const device_csr<Value, Offset>& matrix, \
                                                 cudaStream_t stream);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
