#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include <untax/core/memory_kind.hpp>

namespace untax {

/// Options of a world. Options without a value are taken from the environment, or have its defaults
/// (core/environment.hpp). The comments name the variables.
struct world_options {
  std::optional<std::size_t> heap_bytes;  ///< size of each rank's heap; UNTAX_HEAP_BYTES
  /// Size to which a heap on a GPU grows when it is full; UNTAX_HEAP_LIMIT.
  std::optional<std::size_t> heap_limit;
  std::optional<memory_kind> memory;  ///< from_environment only; UNTAX_MEMORY
  std::optional<int> ranks_per_gpu;   ///< local_gpus, or one rank beside it; UNTAX_RANKS_PER_GPU
  /// This process's GPU, for ranks that are processes; it is a device number of this process.
  /// Without it, rank r is on GPU r modulo the number of visible ones. It is for ranks that are
  /// only some of a job's processes, so that their numbers do not match the GPUs.
  std::optional<int> device;
  std::optional<bool> heap_guards;                      ///< UNTAX_HEAP_GUARDS
  std::optional<std::chrono::milliseconds> wait_limit;  ///< 0 waits for ever; UNTAX_WAIT_LIMIT_MS
  std::optional<std::chrono::milliseconds> join_limit;  ///< 0 waits for ever; UNTAX_JOIN_LIMIT_MS
};

}  // namespace untax
