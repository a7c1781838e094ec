#include "engines/gpu/matrix/matrix.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax::gpu {
namespace {

constexpr int threads = 256;
constexpr int most_blocks = 2112;  // 16 per SM, for 132 SMs

cudaStream_t of(stream_ref stream) { return static_cast<cudaStream_t>(stream.handle); }

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(ceil_div<std::int64_t>(count, threads), 1, most_blocks));
}

__device__ std::int64_t first_here() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

__device__ std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A matrix of any element type, whose elements are read and written as float.
struct typed {
  void* data;
  dtype type;

  [[nodiscard]] __device__ float get(std::int64_t i) const {
    switch (type) {
      case dtype::f16:
        return __half2float(static_cast<const __half*>(data)[i]);
      case dtype::bf16:
        return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
      default:
        return static_cast<const float*>(data)[i];
    }
  }
  __device__ void put(std::int64_t i, float value) const {
    switch (type) {
      case dtype::f16:
        static_cast<__half*>(data)[i] = __float2half_rn(value);
        return;
      case dtype::bf16:
        static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
        return;
      default:
        static_cast<float*>(data)[i] = value;
    }
  }
};

typed elements(const const_matrix& m) { return {const_cast<void*>(m.data), m.type}; }

__global__ void fill(typed to, std::int64_t stride, std::uint64_t seed, range rows, range cols) {
  const std::int64_t count = rows.size * cols.size;
  for (std::int64_t i = first_here(); i < count; i += all_threads()) {
    const std::int64_t row = i / cols.size;
    const std::int64_t col = i % cols.size;
    const auto line =
        mixed(seed + 0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(rows.begin + row + 1));
    const std::uint64_t number = mixed(line + static_cast<std::uint64_t>(cols.begin + col));
    // Box-Muller transform; the argument of the logarithm is never 0.
    const float u = (static_cast<float>(number >> 40U) + 0.5F) * 0x1p-24F;
    const float v = static_cast<float>((number >> 16U) & 0xffffffU) * 0x1p-24F;
    to.put(row * stride + col, sqrtf(-2.F * logf(u)) * cospif(2.F * v));
  }
}

__global__ void multiply(typed a, typed b, float* c, int m, int n, int k, std::int64_t a_stride,
                         std::int64_t b_stride, std::int64_t c_stride) {
  __shared__ float left[32][33];
  __shared__ float right[32][33];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.x) * 32;
  const int column = static_cast<int>(blockIdx.y) * 32;
  float sums[4] = {};
  for (int depth = 0; depth < k; depth += 32) {
    for (int r = y; r < 32; r += 8) {
      const bool inside = depth + x < k;
      left[r][x] = inside && row + r < m ? a.get((row + r) * a_stride + depth + x) : 0.F;
      right[r][x] = inside && column + r < n ? b.get((column + r) * b_stride + depth + x) : 0.F;
    }
    __syncthreads();
    for (int d = 0; d < 32; ++d) {
      for (int i = 0; i < 4; ++i) sums[i] += left[y + 8 * i][d] * right[x][d];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    if (row + y + 8 * i < m && column + x < n)
      c[(row + y + 8 * i) * c_stride + column + x] = sums[i];
  }
}

/// Copies vectors of 16 bytes; all extents are in vectors.
__global__ void join(const uint4* from, uint4* to, std::int64_t rows, sharding shards) {
  const std::int64_t full = shards.full();
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    for (std::int64_t col = blockIdx.y * blockDim.x + threadIdx.x; col < shards.extent;
         col += static_cast<std::int64_t>(gridDim.y) * blockDim.x) {
      const std::int64_t slab = col / full;
      const std::int64_t begin = slab * full;
      const std::int64_t wide = smaller(full, shards.extent - begin);
      to[row * shards.extent + col] = from[begin * rows + row * wide + col - begin];
    }
  }
}

/// The sum over a warp, at every lane.
template <class T>
__device__ T sum_of_lanes(T value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffU, value, lanes);
  return value;
}

__device__ double finite_square(float value) {
  return isfinite(value) ? static_cast<double>(value) * value : 0;
}

/// A warp takes a row: its root mean square first, then its elements.
__global__ void measure(typed is, std::int64_t is_stride, typed should, std::int64_t should_stride,
                        std::int64_t rows, std::int64_t cols, double share, double least_square,
                        comparison* found) {
  const std::int64_t lane = threadIdx.x % 32;
  double difference = 0;
  double size = 0;
  unsigned long long broken = 0;
  float worst = 0;
  for (std::int64_t row = first_here() / 32; row < rows; row += all_threads() / 32) {
    double squares = 0;
    for (std::int64_t col = lane; col < cols; col += 32)
      squares += finite_square(should.get(row * should_stride + col));
    squares = sum_of_lanes(squares);
    size += lane == 0 ? squares : 0;
    const double usual = sqrt(fmax(squares / static_cast<double>(cols), least_square));
    for (std::int64_t col = lane; col < cols; col += 32) {
      const float right = should.get(row * should_stride + col);
      const float value = is.get(row * is_stride + col);
      if (value == right || (isnan(value) && isnan(right))) continue;
      const float off = fabsf(value - right);
      if (!isfinite(off)) {
        ++broken;
        continue;
      }
      difference += static_cast<double>(off) * off;
      const double bound = share * fmax(usual, static_cast<double>(fabsf(right)));
      worst = fmaxf(worst, static_cast<float>(off / bound));
    }
  }
  difference = sum_of_lanes(difference);
  size = sum_of_lanes(size);
  broken = sum_of_lanes(broken);
  for (int lanes = 16; lanes > 0; lanes /= 2)
    worst = fmaxf(worst, __shfl_xor_sync(0xffffffffU, worst, lanes));
  if (lane != 0) return;
  atomicAdd(&found->difference, difference);
  atomicAdd(&found->size, size);
  atomicAdd(reinterpret_cast<unsigned long long*>(&found->broken), broken);
  // Numbers that are not negative are ordered as their bits are.
  atomicMax(reinterpret_cast<int*>(&found->worst), __float_as_int(worst));
}

__global__ void __launch_bounds__(threads)
    convert(typed to, const float* from, std::int64_t count) {
  for (std::int64_t i = first_here(); i < count; i += all_threads()) to.put(i, from[i]);
}

}  // namespace

void round_to(const matrix& to, const const_matrix& from, stream_ref stream) {
  if (to.empty()) return;
  const std::int64_t count = to.rows * to.cols;
  convert<<<blocks_for(count), threads, 0, of(stream)>>>(
      {to.data, to.type}, static_cast<const float*>(from.data), count);
  gpu::require(cudaGetLastError(), "cannot round a matrix");
}

void load_matrix_kernels() {
  for (const void* kernel :
       {reinterpret_cast<const void*>(fill), reinterpret_cast<const void*>(multiply),
        reinterpret_cast<const void*>(join), reinterpret_cast<const void*>(convert),
        reinterpret_cast<const void*>(measure)})
    gpu::load_kernel(kernel, "cannot load a kernel");
}

void fill_normal(const matrix& to, std::uint64_t seed, range rows, range cols, stream_ref stream) {
  if (to.empty()) return;
  fill<<<blocks_for(rows.size * cols.size), threads, 0, of(stream)>>>(
      {to.data, to.type}, to.stride, seed * 0xd1342543de82ef95U, rows, cols);
  gpu::require(cudaGetLastError(), "cannot fill a matrix");
}

void fill_nan(void* to, std::size_t bytes, stream_ref stream) {
  if (bytes == 0) return;
  gpu::require(cudaMemsetAsync(to, 0xff, bytes, of(stream)), "cannot poison memory");
}

void multiply_plainly(const const_matrix& a, const const_matrix& b, const matrix& c,
                      stream_ref stream) {
  if (c.empty()) return;
  const dim3 tiles(static_cast<unsigned>(ceil_div<std::int64_t>(c.rows, 32)),
                   static_cast<unsigned>(ceil_div<std::int64_t>(c.cols, 32)));
  multiply<<<tiles, dim3(32, 8), 0, of(stream)>>>(
      elements(a), elements(b), static_cast<float*>(c.data), static_cast<int>(c.rows),
      static_cast<int>(c.cols), static_cast<int>(a.cols), a.stride, b.stride, c.stride);
  gpu::require(cudaGetLastError(), "cannot multiply plainly");
}

void join_slabs(const void* slabs, void* joined, std::int64_t rows, const sharding& shards,
                stream_ref stream) {
  constexpr int elements_of_vector = 8;
  if (rows == 0 || shards.extent == 0) return;
  const sharding vectors{shards.extent / elements_of_vector, shards.parts,
                         ceil_div<std::int64_t>(shards.granularity, elements_of_vector)};
  const auto across = static_cast<unsigned>(
      std::clamp<std::int64_t>(ceil_div<std::int64_t>(vectors.extent, threads), 1, 64));
  const auto down = static_cast<unsigned>(std::min<std::int64_t>(rows, 65536));
  join<<<dim3(down, across), threads, 0, of(stream)>>>(static_cast<const uint4*>(slabs),
                                                       static_cast<uint4*>(joined), rows, vectors);
  gpu::require(cudaGetLastError(), "cannot lay slabs out side by side");
}

comparison compare(const const_matrix& is, const const_matrix& should, double share,
                   double least_square, void* scratch, stream_ref stream) {
  comparison found;
  if (is.empty()) return found;
  auto* there = static_cast<comparison*>(scratch);
  gpu::require(cudaMemsetAsync(there, 0, sizeof found, of(stream)), "cannot compare matrices");
  measure<<<blocks_for(32 * is.rows), threads, 0, of(stream)>>>(
      elements(is), is.stride, elements(should), should.stride, is.rows, is.cols, share,
      least_square, there);
  gpu::require(cudaGetLastError(), "cannot compare matrices");
  gpu::require(cudaMemcpyAsync(&found, there, sizeof found, cudaMemcpyDeviceToHost, of(stream)),
               "cannot compare matrices");
  gpu::require(cudaStreamSynchronize(of(stream)), "cannot compare matrices");
  return found;
}

}  // namespace untax::gpu
