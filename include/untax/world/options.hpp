#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include <untax/core/memory_kind.hpp>

namespace untax {

/// Options of a world. What is left open comes from the environment, and its defaults
/// (core/environment.hpp).
struct world_options {
  std::optional<std::size_t> heap_bytes;  ///< of each rank; UNTAX_HEAP_BYTES
  std::optional<memory_kind> memory;      ///< from_environment only; UNTAX_MEMORY
  std::optional<int> ranks_per_gpu;       ///< local_gpus only; UNTAX_RANKS_PER_GPU
  /// Of ranks that are processes: this one's GPU, as its process counts them. Otherwise rank r is
  /// on GPU r modulo those that are visible. Ranks may be some of a job's, whose GPUs are others.
  std::optional<int> device;
  std::optional<bool> heap_guards;                      ///< UNTAX_HEAP_GUARDS
  std::optional<std::chrono::milliseconds> wait_limit;  ///< 0 waits for ever; UNTAX_WAIT_LIMIT_MS
  std::optional<std::chrono::milliseconds> join_limit;  ///< 0 waits for ever; UNTAX_JOIN_LIMIT_MS
};

}  // namespace untax
