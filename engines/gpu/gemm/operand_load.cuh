#pragma once

#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// Loads a k-block of this block's rows of the M operand.
template <tile_config config>
__device__ void load_m_operand(const block_view<config>& block, std::byte* to,
                               const CUtensorMap& matrix, tma_coord from, stage_barrier& full) {
  const bool are_weights = config.swap_ab;
  if (!are_weights || (keeps_weights(config) && block.arguments.schedule.n_tiles > 1)) {
    tma_load(to, matrix, from, full);
  } else {
    // L2 need not keep these weights: they are read once, or `keeps_weights` is false.
    tma_load_once(to, matrix, from, full);
  }
}

/// Loads a k-block of this block's share of the N operand: `rows` rows, to all blocks that share
/// the operand.
template <tile_config config>
__device__ void load_n_operand(const block_view<config>& block, std::byte* to,
                               const CUtensorMap& matrix, tma_coord from, int rows,
                               stage_barrier& full) {
  std::byte* const own = to + static_cast<int>(block.m_place) * rows * block_k * 2;
  if constexpr (config.cluster == 1) {
    tma_load(own, matrix, from, full);
  } else {
    constexpr auto everybody = (1U << config.cluster) - 1;
    tma_load(own, matrix, from, full,
             static_cast<std::uint16_t>(everybody << (block.split * config.cluster)));
  }
}

}  // namespace untax::gpu
