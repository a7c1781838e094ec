#include "engines/gpu/gemm/variant.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::gpu {

kernel_variant variant_for(std::span<const kernel_variant> variants, const tile_config& planned) {
  const auto found = std::ranges::find(variants, planned, &kernel_variant::config);
  if (found != variants.end()) return *found;
  throw error(
      errc::internal,
      fmt::format(
          "no kernel was compiled for the tiles of a plan: {} columns, clusters of {}, {} "
          "stages, swap_ab {}, {} sub-tiles of results, deep {}, {} splits; kernels.hpp lists "
          "those that there are",
          planned.block_n, planned.cluster, planned.stages, planned.swap_ab,
          planned.epilogue_buffers, planned.warpgroup_split_k, planned.cluster_split_k));
}

std::optional<tile_config> compiled_for(std::span<const tile_config> kernels,
                                        const tile_config& planned) {
  for (const tile_config& kernel : kernels) {
    tile_config same_tiles = planned;
    same_tiles.stages = kernel.stages;
    same_tiles.epilogue_buffers = kernel.epilogue_buffers;
    if (kernel == same_tiles) return kernel;
  }
  return std::nullopt;
}

}  // namespace untax::gpu
