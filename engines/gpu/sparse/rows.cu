// CSR by rows: a thread, some lanes of a warp or a block add one. The order of additions depends on
// the matrix alone, and is that of the host.

#include "engines/gpu/sparse/device_array.hpp"
#include "engines/gpu/sparse/sums.cuh"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

constexpr int threads = 128;
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
  by_rows(const device_csr<Value, Offset>& matrix, int lanes) : matrix_(matrix), lanes_(lanes) {
    blocks_ = lanes_ == block_lanes ? blocks_for(matrix.rows, 1)
                                    : blocks_for(matrix.rows * lanes, threads);
  }

  void run(const spmv_vectors<Value>& v, cudaStream_t stream) const override {
    if (matrix_.rows == 0) return;
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
    gpu::require(cudaGetLastError(), "spmv by rows cannot start");
  }

 private:
  device_csr<Value, Offset> matrix_;
  int lanes_;
  unsigned blocks_;
};

}  // namespace

template <class Value, class Offset>
device_kernel_of<Value> make_by_rows(const device_csr<Value, Offset>& matrix, int lanes) {
  return std::make_unique<by_rows<Value, Offset>>(matrix, lanes);
}

#define UNTAX_MAKE(Value, Offset) \
  template device_kernel_of<Value> make_by_rows(const device_csr<Value, Offset>& matrix, int lanes);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
