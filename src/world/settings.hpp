#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include <untax/core/environment.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/world/options.hpp>

namespace untax {

/// World options with everything decided.
struct settings {
  std::size_t heap_bytes = 0;
  bool heap_guards = false;
  memory_kind memory = memory_kind::host;
  int ranks_per_gpu = 1;
  std::optional<int> device;  ///< of this rank, where it is a process
  std::chrono::milliseconds wait_limit{0};
  std::chrono::milliseconds join_limit{0};

  [[nodiscard]] static settings of(const world_options& options, const environment& env);
  /// The same of a world of GPUs in one process, whose ranks may share them.
  [[nodiscard]] static settings of_gpus(const world_options& options, const environment& env);
};

}  // namespace untax
