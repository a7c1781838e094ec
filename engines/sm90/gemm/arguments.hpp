#pragma once

#include <cuda.h>

#include <cstdint>

#include <untax/core/types.hpp>

#include "engines/sm90/gemm/schedule.hpp"

namespace untax::sm90 {

/// What stands where no sum has come yet: one of the NaNs.
inline constexpr std::uint32_t no_sum_bits = 0xffffffffU;

/// What a launch is given, apart from what its protocol needs.
struct gemm_arguments {
  CUtensorMap a;  ///< boxes of `a_box_rows` rows, 64 elements deep
  CUtensorMap b;  ///< boxes of `b_box_rows` rows, the same
  CUtensorMap c;  ///< boxes of `c_box_rows` rows, `c_box_columns` elements wide
  tile_schedule schedule;
  float* partials = nullptr;  ///< `partial_bytes` of each block, `no_sum_bits` between launches
  dtype type = dtype::bf16;   ///< of the elements of A, B and C
  int y_rows = 0;             ///< of y, that each block reads for all that share them
  int stage_bytes = 0;        ///< that come to each block for a stage
  int early_stages = 0;       ///< whose weights are read while the kernels ahead end
};

}  // namespace untax::sm90
