#pragma once

#include <cuda.h>

#include <cstdint>

#include "engines/sm90/gemm/schedule.hpp"

namespace untax::sm90 {

/// What a launch is given, apart from what its protocol needs.
struct gemm_arguments {
  CUtensorMap x;  ///< boxes of 128 rows, 64 elements deep
  CUtensorMap y;  ///< boxes of `own_columns` rows
  CUtensorMap c;  ///< boxes of 64 columns
  tile_schedule schedule;
  float* partials = nullptr;       ///< `partial_bytes` for each block
  std::uint64_t* ready = nullptr;  ///< a word for each math warpgroup; 0 between launches
};

}  // namespace untax::sm90
