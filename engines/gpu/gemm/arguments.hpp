#pragma once

#include <cuda.h>

#include <cstdint>

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/schedule.hpp"

namespace untax::gpu {

/// What stands where no sum has come yet: one of the NaNs.
inline constexpr std::uint32_t no_sum_bits = 0xffffffffU;

/// What a launch is given, apart from its `gemm_io`.
struct gemm_arguments {
  CUtensorMap a;  ///< TMA tiles of `a_tma_tile_rows` rows, 64 elements deep
  CUtensorMap b;  ///< TMA tiles of `b_tma_tile_rows` rows, the same
  CUtensorMap c;  ///< TMA tiles of `c_tma_tile_rows` rows, `c_tma_tile_columns` elements wide
  tile_schedule schedule;
  float* partials = nullptr;  ///< `partial_bytes` of each block, `no_sum_bits` between launches
  dtype type = dtype::bf16;   ///< of the elements of A, B and C
  int multicast_rows = 0;     ///< of the N operand, that each block reads and multicasts
  int stage_bytes = 0;        ///< that come to each block for a stage
  int early_stages = 0;       ///< whose weights are read while the kernels ahead end
};

}  // namespace untax::gpu
