#pragma once

#include <cstddef>

#include "engines/sm90/gemm/config.hpp"

namespace untax::sm90 {

/// A kernel, as the runtime of CUDA launches it.
struct kernel_variant {
  const void* kernel = nullptr;
  std::size_t shared_bytes = 0;
};

// One for each of `tile_configs`, each compiled from its own file in variants/.
[[nodiscard]] kernel_variant rows_by_256();
[[nodiscard]] kernel_variant rows_by_224();
[[nodiscard]] kernel_variant rows_by_192();
[[nodiscard]] kernel_variant rows_by_160();
[[nodiscard]] kernel_variant rows_by_144();
[[nodiscard]] kernel_variant rows_by_128();
[[nodiscard]] kernel_variant rows_by_112();
[[nodiscard]] kernel_variant weights_by_128();
[[nodiscard]] kernel_variant weights_by_64();
[[nodiscard]] kernel_variant weights_by_64_clusters();
[[nodiscard]] kernel_variant weights_by_32();
[[nodiscard]] kernel_variant weights_by_16();
[[nodiscard]] kernel_variant rows_by_128_pairs();
[[nodiscard]] kernel_variant weights_by_128_fours();
[[nodiscard]] kernel_variant weights_by_128_pairs();
[[nodiscard]] kernel_variant weights_by_64_pairs();
[[nodiscard]] kernel_variant weights_by_32_pairs();
[[nodiscard]] kernel_variant weights_by_16_pairs();

}  // namespace untax::sm90
