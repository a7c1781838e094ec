#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include <untax/core/environment.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/world/options.hpp>

namespace untax {

/// World options in which options, variables and defaults are combined.
struct settings {
  std::size_t heap_bytes = 0;  ///< at first, on GPUs
  std::size_t heap_limit = 0;  ///< size to which a heap on a GPU grows
  bool heap_guards = false;
  memory_kind memory = memory_kind::host;
  int ranks_per_gpu = 1;
  std::optional<int> device;  ///< of this rank, if the rank is a process
  std::chrono::milliseconds wait_limit{0};
  std::chrono::milliseconds join_limit{0};

  [[nodiscard]] static settings of(const world_options& options, const environment& env);
  /// As `of`, for a world of GPUs in one process, whose ranks may share GPUs.
  [[nodiscard]] static settings of_gpus(const world_options& options, const environment& env);
};

}  // namespace untax
