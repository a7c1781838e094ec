#pragma once

#include <cuda.h>

#include <cstdint>

#include "engines/sm90/gemm/schedule.hpp"

namespace untax::sm90 {

/// What stands where no sum has come yet.
inline constexpr std::uint32_t no_sum_bits = 0xffffffffU;

/// What a launch is given, apart from what its protocol needs.
struct gemm_arguments {
  CUtensorMap x;  ///< boxes of `tile_rows`, 64 elements deep
  CUtensorMap y;  ///< boxes of `own_columns`
  CUtensorMap c;  ///< boxes of 64 columns
  tile_schedule schedule;
  float* partials =
      nullptr;          ///< `partial_bytes` for each block, all `no_sum_bits` between launches
  int own_columns = 0;  ///< rows of y that each block of a cluster reads for all of them
  int slice_bytes = 0;  ///< that come to each block
  bool weights_ready = false;  ///< see gemm_plan
};

}  // namespace untax::sm90
