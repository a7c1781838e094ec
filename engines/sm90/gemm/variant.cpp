#include "engines/sm90/gemm/variant.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::sm90 {

kernel_variant variant_for(std::span<const kernel_variant> variants, const tile_config& planned) {
  const auto found = std::ranges::find(variants, planned, &kernel_variant::config);
  if (found != variants.end()) return *found;
  throw error(
      errc::internal,
      fmt::format("no kernel was compiled for the tiles of a plan: {} columns, clusters of {}, {} "
                  "stages, swapped {}, {} chunks of results, deep {}, {} pieces; kernels.def lists "
                  "those that there are",
                  planned.columns, planned.cluster, planned.stages, planned.swapped,
                  planned.staging, planned.deep, planned.pieces));
}

std::optional<tile_config> compiled_for(std::span<const tile_config> kernels,
                                        const tile_config& planned) {
  for (const tile_config& kernel : kernels) {
    tile_config same_tiles = planned;
    same_tiles.stages = kernel.stages;
    same_tiles.staging = kernel.staging;
    if (kernel == same_tiles) return kernel;
  }
  return std::nullopt;
}

}  // namespace untax::sm90
