// CSR by rows: a thread, some lanes of a warp or a block adds a row; or lanes add short rows and
// the block long ones. The order of additions depends on the matrix alone, and is that of the host.

#include <untax/sparse/ways.hpp>

#include "engines/gpu/sparse/device_array.hpp"
#include "engines/gpu/sparse/sums.cuh"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

constexpr int threads = detail::long_row_lanes;
constexpr int block_lanes = detail::block_lanes;

template <int lanes, class Value, class Offset>
__global__ void __launch_bounds__(threads)
    by_lanes(device_csr<Value, Offset> m, spmv_vectors<Value> v) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  Value sum = 0;
  if (row < m.rows) sum = sum_of_lane(m, v.x, m.offsets[row], m.offsets[row + 1], lane, lanes);
  sum = sum_of_lanes(sum, lanes);
  if (row < m.rows && lane == 0) put(v, row, sum);
}

/// Adds the long rows of a block one by one. All threads of the block must call this. `is_long`:
/// whether the row of the calling thread's lanes is long.
template <int lanes, class Value, class Offset>
__device__ void add_long_rows(const device_csr<Value, Offset>& m, const spmv_vectors<Value>& v,
                              bool is_long) {
  if (__syncthreads_or(is_long ? 1 : 0) == 0) return;
  constexpr int rows = threads / lanes;
  __shared__ bool are_long[rows];
  __shared__ Value warps[threads / 32];
  if (threadIdx.x % lanes == 0) are_long[threadIdx.x / lanes] = is_long;
  for (int i = 0; i < rows; ++i) {
    __syncthreads();
    if (!are_long[i]) continue;
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * rows + i;
    const Value sum = sum_of_block<threads>(sum_of_lane(m, v.x, m.offsets[row], m.offsets[row + 1],
                                                        static_cast<int>(threadIdx.x), threads),
                                            warps);
    if (threadIdx.x == 0) put(v, row, sum);
  }
}

template <int lanes, class Value, class Offset>
__global__ void __launch_bounds__(threads)
    by_lanes_or_block(device_csr<Value, Offset> m, spmv_vectors<Value> v) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  if (row < m.rows) {
    begin = m.offsets[row];
    end = m.offsets[row + 1];
  }
  const bool is_long = lanes_of_row(lanes, true, end - begin) != lanes;
  const Value sum =
      sum_of_lanes(sum_of_lane(m, v.x, begin, is_long ? begin : end, lane, lanes), lanes);
  if (row < m.rows && lane == 0 && !is_long) put(v, row, sum);
  add_long_rows<lanes>(m, v, is_long);
}

template <class Value, class Offset>
__global__ void __launch_bounds__(block_lanes)
    by_block(device_csr<Value, Offset> m, spmv_vectors<Value> v) {
  __shared__ Value warps[block_lanes / 32];
  const std::int64_t row = blockIdx.x;
  const Value sum =
      sum_of_block<block_lanes>(sum_of_lane(m, v.x, m.offsets[row], m.offsets[row + 1],
                                            static_cast<int>(threadIdx.x), block_lanes),
                                warps);
  if (threadIdx.x == 0) put(v, row, sum);
}

template <class Value, class Offset>
class by_rows final : public device_kernel<Value> {
 public:
  by_rows(const device_csr<Value, Offset>& matrix, const spmv_way& way)
      : matrix_(matrix), lanes_(way.lanes), mixed_(way.mixed) {
    blocks_ = lanes_ == block_lanes ? blocks_for(matrix.rows, 1)
                                    : blocks_for(matrix.rows * lanes_, threads);
  }

  void run(const spmv_vectors<Value>& v, cudaStream_t stream) const override {
    if (matrix_.rows == 0) return;
    if (mixed_) {
      const auto kernel =
          lanes_ == 4 ? by_lanes_or_block<4, Value, Offset> : by_lanes_or_block<16, Value, Offset>;
      kernel<<<blocks_, threads, 0, stream>>>(matrix_, v);
    } else {
      run_unmixed(v, stream);
    }
    gpu::require(cudaGetLastError(), "spmv by rows cannot start");
  }

 private:
  void run_unmixed(const spmv_vectors<Value>& v, cudaStream_t stream) const {
    switch (lanes_) {
      case 1:
        by_lanes<1><<<blocks_, threads, 0, stream>>>(matrix_, v);
        break;
      case 2:
        by_lanes<2><<<blocks_, threads, 0, stream>>>(matrix_, v);
        break;
      case 4:
        by_lanes<4><<<blocks_, threads, 0, stream>>>(matrix_, v);
        break;
      case 8:
        by_lanes<8><<<blocks_, threads, 0, stream>>>(matrix_, v);
        break;
      case 16:
        by_lanes<16><<<blocks_, threads, 0, stream>>>(matrix_, v);
        break;
      case 32:
        by_lanes<32><<<blocks_, threads, 0, stream>>>(matrix_, v);
        break;
      default:
        by_block<<<blocks_, block_lanes, 0, stream>>>(matrix_, v);
    }
  }

  device_csr<Value, Offset> matrix_;
  int lanes_;
  bool mixed_;
  unsigned blocks_;
};

}  // namespace

template <class Value, class Offset>
device_kernel_of<Value> make_by_rows(const device_csr<Value, Offset>& matrix, const spmv_way& way) {
  return std::make_unique<by_rows<Value, Offset>>(matrix, way);
}

#define UNTAX_MAKE(Value, Offset)                                                        \
  template device_kernel_of<Value> make_by_rows(const device_csr<Value, Offset>& matrix, \
                                                const spmv_way& way);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
