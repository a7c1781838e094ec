// Statistics of row lengths, in one pass over the offsets. Blocks store partial results directly
// into mapped host memory, so no device memory is allocated and nothing is copied. The host
// combines them after it has synchronised the stream.

#include <algorithm>
#include <memory>

#include "engines/gpu/sparse/device_array.hpp"
#include "engines/gpu/sparse/formats.hpp"
#include "engines/gpu/sparse/sums.cuh"

namespace untax::sparse {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int most_blocks = 1024;
/// Slices whose offsets a warp loads before it uses the first ones.
constexpr int ahead = 4;

/// Statistics over some rows: sums, minimum and maximum.
struct row_sums {
  double squares = 0;
  std::int64_t elements = 0;
  std::int64_t shortest = 0x7fffffffffffffff;
  std::int64_t longest = 0;
  std::int64_t padded = 0;

  UNTAX_HOST_DEVICE void join(const row_sums& other) {
    squares += other.squares;
    elements += other.elements;
    shortest = other.shortest < shortest ? other.shortest : shortest;
    longest = other.longest > longest ? other.longest : longest;
    padded += other.padded;
  }
};

template <class T>
__device__ T from_lane_behind(T mine, int away) {
  return __shfl_down_sync(whole_warp, mine, away);
}
__device__ row_sums from_lane_behind(const row_sums& mine, int away) {
  return {from_lane_behind(mine.squares, away), from_lane_behind(mine.elements, away),
          from_lane_behind(mine.shortest, away), from_lane_behind(mine.longest, away),
          from_lane_behind(mine.padded, away)};
}

/// Warps loop over slices of 32 rows, one row per lane. Each block stores one result to `found`.
template <class Offset>
__global__ void __launch_bounds__(threads)
    gather_bounds(std::int64_t rows, const Offset* offsets, row_sums* found) {
  static_assert(slice_rows == 32);
  __shared__ row_sums of_warps[warps];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t all_warps = static_cast<std::int64_t>(gridDim.x) * warps;
  const std::int64_t slices = (rows + slice_rows - 1) / slice_rows;
  row_sums mine;
  for (std::int64_t slice = static_cast<std::int64_t>(blockIdx.x) * warps + warp; slice < slices;
       slice += ahead * all_warps) {
    std::int64_t lengths[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const std::int64_t row = (slice + i * all_warps) * slice_rows + lane;
      lengths[i] = row < rows ? static_cast<std::int64_t>(offsets[row + 1]) - offsets[row] : -1;
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      std::int64_t longest = lengths[i] < 0 ? 0 : lengths[i];
      if (lengths[i] >= 0) {
        const auto length = static_cast<double>(lengths[i]);
        mine.squares += length * length;
        mine.elements += lengths[i];
        mine.shortest = min(mine.shortest, lengths[i]);
        mine.longest = max(mine.longest, lengths[i]);
      }
      for (int away = 16; away > 0; away /= 2)
        longest = max(longest, __shfl_xor_sync(whole_warp, longest, away));
      if (lane == 0) mine.padded += longest * slice_rows;
    }
  }
  for (int away = 16; away > 0; away /= 2) {
    const row_sums other = from_lane_behind(mine, away);
    if (lane < away) mine.join(other);
  }
  if (lane == 0) of_warps[warp] = mine;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int i = 1; i < warps; ++i) mine.join(of_warps[i]);
  found[blockIdx.x] = mine;
}

/// Mapped host memory to which kernels of the calling thread store. Throws `out_of_memory`.
row_sums* memory_of_thread() {
  struct give_back {
    void operator()(row_sums* memory) const { cudaFreeHost(memory); }
  };
  thread_local std::unique_ptr<row_sums, give_back> mine;
  if (mine == nullptr) {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, most_blocks * sizeof(row_sums),
                      cudaHostAllocMapped | cudaHostAllocPortable) != cudaSuccess) {
      cudaGetLastError();
      throw error(errc::out_of_memory,
                  fmt::format("the host has no {} bytes of memory that a GPU can store to",
                              most_blocks * sizeof(row_sums)));
    }
    mine.reset(static_cast<row_sums*>(memory));
  }
  return mine.get();
}

}  // namespace

template <class Offset>
row_bounds bounds_of_rows(std::int64_t rows, const Offset* offsets, stream_ref on) {
  if (rows == 0) return {};
  const auto stream = static_cast<cudaStream_t>(on.handle);
  row_sums* const found = memory_of_thread();
  constexpr std::int64_t rows_of_block = std::int64_t{warps} * ahead * slice_rows;
  const auto blocks = static_cast<int>(
      std::min<std::int64_t>((rows + rows_of_block - 1) / rows_of_block, most_blocks));
  gather_bounds<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(rows, offsets, found);
  gpu::require(cudaGetLastError(), "rows cannot be looked at");
  gpu::require(cudaStreamSynchronize(stream), "rows cannot be looked at");
  row_sums sums;
  for (int i = 0; i < blocks; ++i) sums.join(found[i]);
  const double mean = static_cast<double>(sums.elements) / static_cast<double>(rows);
  const double variance = sums.squares / static_cast<double>(rows) - mean * mean;
  return {sums.shortest, sums.longest, variance > 0 ? variance : 0, sums.padded};
}

template row_bounds bounds_of_rows(std::int64_t, const std::int32_t*, stream_ref);
template row_bounds bounds_of_rows(std::int64_t, const std::int64_t*, stream_ref);

}  // namespace untax::sparse
