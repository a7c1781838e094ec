#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "engines/gpu/gemm/kernels.hpp"

namespace untax::gpu {

/// A kernel, as the CUDA runtime launches it, and the tiles for which it was compiled.
struct kernel_variant {
  tile_config config;
  const void* kernel = nullptr;
  std::size_t shared_bytes = 0;
};

/// The kernel of a configuration and a `gemm_io`: one instantiation per line in kernels.hpp.
template <tile_config config, class Io>
[[nodiscard]] kernel_variant variant_of();

/// The variant that was compiled for exactly these tiles. Throws `internal` if there is none: then
/// no kernel can execute the plan.
[[nodiscard]] kernel_variant variant_for(std::span<const kernel_variant> variants,
                                         const tile_config& planned);

/// The variant of a list in kernels.hpp.
template <const auto& kernels, class Io>
[[nodiscard]] kernel_variant variant_for(const tile_config& planned) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    static const std::vector<kernel_variant> variants = {variant_of<kernels[i], Io>()...};
    return variant_for(variants, planned);
  }
  (std::make_index_sequence<std::size(kernels)>());
}

}  // namespace untax::gpu
