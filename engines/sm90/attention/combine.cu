#include "engines/sm90/attention/combine.hpp"

#include <cstdint>

#include "engines/sm90/attention/ranks.cuh"
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
    std::uint64_t data[combination::most_ranks] = {};
#pragma unroll
    for (int k = 0; k < combination::most_ranks; ++k) {
      if (k < a.ranks) data[k] = packet_of(row_of(k), packets - 1, words);
    }
    combination all;
    all.weigh(data, a.ranks);
    auto* const out = static_cast<std::uint16_t*>(a.memory.out) + row * a.memory.out_stride;
    for (int i = lane(); i < packets - 1; i += 32) {
#pragma unroll
      for (int k = 0; k < combination::most_ranks; ++k) {
        if (k < a.ranks) data[k] = packet_of(row_of(k), i, words);
      }
      all.combine(data, a.ranks, out + i * format::columns);
    }
  }
}

/// A warp takes a row; it sends all of its rows before it waits for those of others.
template <class Element, class Wire>
[[nodiscard]] __device__ bool exchange_rows(const attention_arguments& a, std::uint64_t epoch) {
  using format = partial_format<Wire>;
  const int words = format::row_words(a.shape.head_dim);
  const rank_exchange<Element, Wire> ranks(a, epoch);
  const device_watch of_block(a.run.world, static_cast<int>(blockIdx.x));
  seldom_watch watch(threadIdx.x >= 32 ? of_block.silent() : of_block);
  for (std::int64_t row = first_warp(); row < a.shape.rows(); row += all_warps()) {
    const int flags = format::flags(a.shape.head_dim);
    const std::uint64_t* const flag = lane() < flags ? a.flags + row * flags + lane() : nullptr;
    held_wait wait{flag, epoch, 0, a.rank, static_cast<int>(row), verb::acquire};
    if (wait_for_parts(wait, watch, a.run.operator_name()) != wait_outcome::ok) return false;
    const std::uint32_t* const from = a.rows + row * words;
    for (int i = lane(); i < ranks.packets(); i += 32)
      ranks.send(row, i, packet_of(from, i, words));
  }
  for (std::int64_t row = first_warp(); row < a.shape.rows(); row += all_warps()) {
    if (!ranks.await(row, 1, watch)) return false;
    for (int begin = 0; begin < ranks.packets() - 1; begin += 32) {
      if (!ranks.receive(row, begin, 32, watch)) return false;
    }
  }
  return true;
}

/// Begins when all blocks of attention have, and runs where one of them leaves room or is done.
/// What comes behind it comes behind attention too.
template <class Element, class Wire>
__global__ void __launch_bounds__(combine_threads, 4)
    exchange(const __grid_constant__ attention_arguments a) {
  if (a.run.launch < 0) return;
  const std::uint64_t epoch = a.run.epochs[blockIdx.x] + 1;
  const bool well = exchange_rows<Element, Wire>(a, epoch);
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
