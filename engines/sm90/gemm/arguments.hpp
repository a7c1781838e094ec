#pragma once

#include <cuda.h>

#include <cstdint>

#include "engines/sm90/gemm/schedule.hpp"

namespace untax::sm90 {

/// What a launch is given, apart from what its protocol needs.
struct gemm_arguments {
  CUtensorMap a;  ///< boxes of `a_box_rows` rows, 64 elements deep
  CUtensorMap b;  ///< boxes of `b_box_rows` rows, the same
  CUtensorMap c;  ///< boxes of `c_box_rows` rows, 64 elements wide
  tile_schedule schedule;
  float* partials = nullptr;       ///< `partial_bytes` for each block
  std::uint64_t* ready = nullptr;  ///< a word for each math warpgroup; 0 between launches
};

}  // namespace untax::sm90
