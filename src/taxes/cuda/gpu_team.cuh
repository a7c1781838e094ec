#pragma once

#include <cuda_runtime.h>

#include <untax/flow/device_barrier.cuh>
#include <untax/world/device_world.cuh>

#include "src/taxes/cuda/gpu_team.hpp"

namespace untax {

inline device_world gpu_team::world_of(int rank) const {
  return device_world(worlds_[static_cast<std::size_t>(rank)].device_state());
}

}  // namespace untax
