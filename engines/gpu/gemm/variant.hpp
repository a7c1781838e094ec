#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engines/gpu/gemm/config.hpp"

namespace untax::gpu {

/// A kernel, as the runtime of CUDA launches it, and the tiles that it was compiled for.
struct kernel_variant {
  tile_config config;
  const void* kernel = nullptr;
  std::size_t shared_bytes = 0;
};

/// The kernel of a configuration with a `gemm_io`. Each line of a kernels.def is one instantiation,
/// in a source that the build makes of it (cmake/untax_kernels.cmake).
template <tile_config config, class Io>
[[nodiscard]] kernel_variant variant_of();

/// The one of `variants` that was compiled for exactly these tiles. Throws `internal` if there is
/// none: then a plan was made that no kernel carries out.
[[nodiscard]] kernel_variant variant_for(std::span<const kernel_variant> variants,
                                         const tile_config& planned);

/// The configuration in which an operator has a kernel for the tiles of a plan of the GEMM alone.
/// How many stages and sub-tiles of results it keeps may differ; the rest is the same. Nothing if
/// there is no kernel for such tiles.
[[nodiscard]] std::optional<tile_config> compiled_for(std::span<const tile_config> kernels,
                                                      const tile_config& planned);

}  // namespace untax::gpu
