#pragma once

#include <cstddef>

#include "engines/gpu/flash_attention/arguments.hpp"
#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// Shared memory of a block. Operands lie in parts of 64 columns, as TMA leaves them with its
/// swizzle of 128 bytes: part after part, in each row after row.
template <flash_config config>
struct flash_memory {
  static constexpr int parts = config.width / 64;
  static constexpr int query_part_bytes = config.rows() * 128;
  static constexpr int part_bytes = config.keys * 128;

  alignas(1024) std::byte queries[config.query_bytes()];
  alignas(1024) std::byte ring[config.places][config.place_bytes()];
  stage_barrier full[config.places];   ///< TMA has brought keys or values
  stage_barrier empty[config.places];  ///< every warp that multiplies has done with them
  stage_barrier tile_full;             ///< a tile is written, and its queries are there
  stage_barrier tile_empty;            ///< every warp that multiplies has done with the queries
  /// In turn, so that the one before is there while its results are stored. With `rows` 0: there
  /// are no more.
  flash_tile tiles[2];

  __device__ void init() {
    for (int i = 0; i < config.places; ++i) {
      full[i].init(1);
      empty[i].init(config.groups * 4);
    }
    tile_full.init(1);
    tile_empty.init(config.groups * 4);
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
};

}  // namespace untax::gpu
