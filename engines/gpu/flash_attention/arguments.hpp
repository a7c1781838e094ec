#pragma once

#include <cuda.h>

#include <cstdint>

#include "engines/gpu/flash_attention/sm_queues.hpp"
#include "engines/gpu/flash_attention/tile.hpp"

namespace untax::gpu {

/// The arguments of the kernel.
struct flash_arguments {
  CUtensorMap queries;
  CUtensorMap keys;
  CUtensorMap values;
  flash_shape shape;
  flash_tiles tiles;
  const std::int32_t* order;  ///< [tiles]: the number of the tile at each position
  sm_queues positions;        ///< in `order`; `taken` is 0 before and after a run
  int* left;                  ///< blocks that found no tile left; 0 before and after a run
  void* out;
  float* log_sums;
  const std::int32_t* query_begins;
  const std::int32_t* key_begins;
  std::int64_t out_stride;
  float scale_to_base_2;  ///< of logits, as exponentials are computed as powers of 2
};

}  // namespace untax::gpu
