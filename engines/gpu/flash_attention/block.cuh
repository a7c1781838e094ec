#pragma once

#include <cstddef>

#include "engines/gpu/flash_attention/arguments.hpp"
#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// Shared memory of a block. Operands consist of parts of 64 columns, which TMA writes with its
/// 128-byte swizzle: one part after the other, and within a part one row after the other.
template <flash_config config>
struct flash_memory {
  static constexpr int parts = config.width / 64;
  static constexpr int query_part_bytes = config.rows() * 128;
  static constexpr int part_bytes = config.keys * 128;

  alignas(1024) std::byte queries[config.query_bytes()];
  alignas(1024) std::byte ring[config.places][config.place_bytes()];
  stage_barrier full[config.places];   ///< TMA has loaded keys or values
  stage_barrier empty[config.places];  ///< every consumer warp has released the stage
  stage_barrier tile_full;             ///< a tile is in `tiles`, and its queries are loaded
  stage_barrier tile_empty;            ///< every consumer warp has released the queries
  /// Two buffers, used alternately, so that a tile stays valid while its results are stored.
  /// `rows` 0: there are no more tiles.
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
