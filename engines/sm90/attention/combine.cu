#include "engines/sm90/attention/combine.hpp"

#include <cstdint>

#include "engines/sm90/attention/config.cuh"
#include "engines/sm90/attention/ranks.cuh"
#include "engines/sm90/attention/shares.cuh"
#include "engines/sm90/ptx/cluster.cuh"

namespace untax::sm90 {
namespace {

[[nodiscard]] __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
[[nodiscard]] __device__ std::int64_t first_warp() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
}
[[nodiscard]] __device__ std::int64_t all_warps() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x / 32;
}

/// Packet `i` of a row of `count` words.
[[nodiscard]] __device__ std::uint64_t packet_of(const std::uint32_t* row, int i, int count) {
  const std::uint64_t high = 2 * i + 1 < count ? __ldcg(row + 2 * i + 1) : 0;
  return __ldcg(row + 2 * i) | high << 32U;
}

/// A warp takes a row.
template <class Element, class Wire>
__global__ void __launch_bounds__(combine_threads)
    combine(const __grid_constant__ attention_arguments a) {
  using format = partial_format<Wire>;
  using combination = rank_combination<Element, Wire>;
  if (a.run.launch < 0) return;
  const int packets = format::packets(a.shape.head_dim);
  const int words = format::row_words(a.shape.head_dim);
  for (std::int64_t row = first_warp(); row < a.shape.rows(); row += all_warps()) {
    const auto row_of = [&](int rank) { return a.rows + (rank * a.shape.rows() + row) * words; };
    const combination all(lane() < a.ranks ? packet_of(row_of(lane()), packets - 1, words) : 0,
                          a.ranks);
    float weights[combination::most_ranks];
#pragma unroll
    for (int k = 0; k < combination::most_ranks; ++k) weights[k] = all.weight_of(k);
    auto* const out = static_cast<std::uint16_t*>(a.memory.out) + row * a.memory.out_stride;
    for (int i = lane(); i < packets - 1; i += 32) {
      std::uint64_t data[combination::most_ranks] = {};
#pragma unroll
      for (int k = 0; k < combination::most_ranks; ++k) {
        if (k < a.ranks) data[k] = packet_of(row_of(k), i, words);
      }
      float sum[format::columns] = {};
#pragma unroll
      for (int k = 0; k < combination::most_ranks; ++k) combination::add(weights[k], data[k], sum);
      combination::store(sum, all.part(), out + i * format::columns);
    }
  }
}

/// Half of the warps send, the others receive, so nobody waits for another rank before it has sent
/// what it has.
template <class Element, class Wire, int width>
[[nodiscard]] __device__ bool exchange_rows(const attention_arguments& a, std::uint64_t epoch) {
  constexpr int warps = combine_threads / 32 / 2;
  const attention_work<attention_config<width>::keys> work(a.shape, a.memory.lengths,
                                                           static_cast<int>(gridDim.x));
  if (static_cast<int>(blockIdx.x) >= work.blocks()) return true;
  const rank_exchange<Element, Wire> ranks(a, epoch);
  const device_watch of_block(a.run.world, static_cast<int>(blockIdx.x));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool sends = warp < warps;
  // The first that waits for other ranks tells of it.
  seldom_watch watch(warp == warps ? of_block : of_block.silent());
  return for_rows_of_block(
      work, a.shape, warp % warps, warps,
      [&](std::int64_t row) {
        return sends ? ranks.await_own(row, watch) : ranks.await(row, watch);
      },
      [&](std::int64_t row) {
        return sends ? ranks.forward(row, watch) : ranks.receive(row, watch);
      });
}

/// Begins when all blocks of attention have, and runs where one of them leaves room or is done;
/// each block follows one of those, item by item. What comes behind it comes behind attention too.
template <class Element, class Wire>
__global__ void __launch_bounds__(combine_threads, 4)
    exchange(const __grid_constant__ attention_arguments a) {
  if (a.run.launch < 0) return;
  const std::uint64_t epoch = a.run.epochs[blockIdx.x] + 1;
  const bool well = a.shape.head_dim == 64 ? exchange_rows<Element, Wire, 64>(a, epoch)
                                           : exchange_rows<Element, Wire, 128>(a, epoch);
  if (__syncthreads_and(well ? 1 : 0) != 0 && threadIdx.x == 0) a.run.epochs[blockIdx.x] = epoch;
  await_kernels_before();
}

}  // namespace

const void* combine_kernel(dtype type, dtype partials) {
  const bool narrow = partials == dtype::bf16;
  if (type == dtype::bf16) {
    return narrow ? reinterpret_cast<const void*>(&combine<bf16, bf16>)
                  : reinterpret_cast<const void*>(&combine<bf16, float>);
  }
  return narrow ? reinterpret_cast<const void*>(&combine<f16, bf16>)
                : reinterpret_cast<const void*>(&combine<f16, float>);
}

const void* exchange_kernel(dtype type, dtype partials) {
  const bool narrow = partials == dtype::bf16;
  if (type == dtype::bf16) {
    return narrow ? reinterpret_cast<const void*>(&exchange<bf16, bf16>)
                  : reinterpret_cast<const void*>(&exchange<bf16, float>);
  }
  return narrow ? reinterpret_cast<const void*>(&exchange<f16, bf16>)
                : reinterpret_cast<const void*>(&exchange<f16, float>);
}

}  // namespace untax::sm90
