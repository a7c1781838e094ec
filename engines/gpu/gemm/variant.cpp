#include "engines/gpu/gemm/variant.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

kernel_variant variant_for(std::span<const kernel_variant> variants, const tile_config& planned) {
  const auto found = std::ranges::find(variants, planned, &kernel_variant::config);
  if (found != variants.end()) return *found;
  throw error(
      errc::internal,
      fmt::format(
          "no kernel in kernels.hpp has {} sub-tiles of results and the tiles of a plan: {}",
          planned.epilogue_buffers, gemm_plan{planned, {}}.text()));
}

}  // namespace untax::gpu
