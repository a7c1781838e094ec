#include "engines/gpu/attention/combine.hpp"

#include <cstdint>
#include <type_traits>

#include "engines/gpu/attention/config.cuh"
#include "engines/gpu/attention/ranks.cuh"
#include "engines/gpu/attention/shares.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"

namespace untax::gpu {
namespace {

[[nodiscard]] __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
[[nodiscard]] __device__ std::int64_t first_warp() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
}
[[nodiscard]] __device__ std::int64_t all_warps() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x / 32;
}

/// Loads elements 4 * i to 4 * i + 3 of a row.
template <class Wire>
[[nodiscard]] __device__ typename partial_format<Wire>::four four_of(const std::uint32_t* row,
                                                                     int i) {
  if constexpr (std::is_same_v<Wire, float>) {
    // Rows have an even number of words, so 8-byte loads are aligned.
    const auto* const pairs = reinterpret_cast<const uint2*>(row) + 2 * i;
    const uint2 low = __ldcg(pairs);
    const uint2 high = __ldcg(pairs + 1);
    return {low.x, low.y, high.x, high.y};
  } else {
    return {__ldcg(row + 2 * i), __ldcg(row + 2 * i + 1)};
  }
}
/// Loads the statistics of a row, which follow its elements.
template <class Wire>
[[nodiscard]] __device__ std::uint64_t statistics_of(const std::uint32_t* row, int width) {
  const std::uint32_t* const tail = row + width / partial_format<Wire>::each;
  if constexpr (std::is_same_v<Wire, float>) return two_words(__ldcg(tail), __ldcg(tail + 1));
  return __ldcg(tail);
}

/// Each warp combines one row at a time.
template <class Element, class Wire>
__global__ void __launch_bounds__(combine_threads)
    combine(const __grid_constant__ attention_arguments a) {
  using format = partial_format<Wire>;
  using combination = rank_combination<Element, Wire>;
  if (a.run.launch < 0) return;
  const int width = a.shape.head_dim;
  const int words = format::row_words(width);
  for (std::int64_t row = first_warp(); row < a.shape.rows(); row += all_warps()) {
    const auto row_of = [&](int rank) { return a.rows + (rank * a.shape.rows() + row) * words; };
    const combination all(lane() < a.ranks ? statistics_of<Wire>(row_of(lane()), width) : 0,
                          a.ranks);
    float weights[combination::most_ranks];
#pragma unroll
    for (int k = 0; k < combination::most_ranks; ++k) weights[k] = all.weight_of(k);
    auto* const out = static_cast<std::uint16_t*>(a.memory.out) + row * a.memory.out_stride;
    for (int i = lane(); i < width / 4; i += 32) {
      typename format::four data[combination::most_ranks] = {};
#pragma unroll
      for (int k = 0; k < combination::most_ranks; ++k) {
        if (k < a.ranks) data[k] = four_of<Wire>(row_of(k), i);
      }
      float sum[4] = {};
#pragma unroll
      for (int k = 0; k < combination::most_ranks; ++k) combination::add(weights[k], data[k], sum);
      combination::store(sum, all.part(), out + 4 * i);
    }
  }
}

/// Half of the warps send, the other half receive, so that sending never waits for another rank.
template <class Element, class Wire, int width>
[[nodiscard]] __device__ bool exchange_rows(const attention_arguments& a, std::uint64_t epoch) {
  constexpr int warps = combine_threads / 32 / 2;
  using work_of_width = attention_work<attention_config<width>::keys>;
  const work_of_width work(a, work_of_width::read(a));
  const rank_exchange<Element, Wire> ranks(a, epoch);
  const device_watch of_block(a.run.world, static_cast<int>(blockIdx.x));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool sends = warp < warps;
  // Of all warps, only the first receiving warp publishes its waits.
  lazy_watch watch(warp == warps ? of_block : of_block.silent());
  return for_rows_of_block(
      work, a.shape, warp % warps, warps,
      [&](std::int64_t row) {
        return sends ? ranks.await_own(row, watch) : ranks.await(row, watch);
      },
      [&](std::int64_t row) {
        return sends ? ranks.forward(row, watch) : ranks.receive(row, watch);
      });
}

/// Starts once all attention blocks have started, on SMs with room. Block i handles the rows of
/// attention block i, item by item. The wait at the end orders later kernels after attention, too.
///
/// It runs beside attention, so it cannot wait for the end of that kernel. Those before it have
/// ended: blocks of attention wait for that before they let this kernel start. So epochs and
/// lengths are final in L2, and are read there, since L1 may hold older ones.
template <class Element, class Wire>
__global__ void __launch_bounds__(combine_threads, 4)
    exchange(const __grid_constant__ attention_arguments a) {
  if (a.run.launch < 0) return;
  const std::uint64_t epoch = __ldcg(a.run.epochs + blockIdx.x) + 1;
  const bool sends = threadIdx.x < combine_threads / 2;
  note_kernel_begin(a.run, sends ? warp_role::sender : warp_role::receiver, epoch);
  const bool well = a.shape.head_dim == 64 ? exchange_rows<Element, Wire, 64>(a, epoch)
                                           : exchange_rows<Element, Wire, 128>(a, epoch);
  note_kernel_end(a.run);
  if (__syncthreads_and(well ? 1 : 0) != 0 && threadIdx.x == 0) a.run.epochs[blockIdx.x] = epoch;
  griddepcontrol_wait();
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

}  // namespace untax::gpu
