#pragma once

#include "engines/sm90/gemm/kernel.cuh"
#include "engines/sm90/gemm/variant.hpp"

namespace untax::sm90 {

template <tile_config c, class Protocol>
inline constexpr auto kernel_of =
    &gemm_kernel<c.columns, c.cluster, c.stages, c.swapped, c.staging, c.deep, c.pieces, Protocol>;

template <tile_config config, class Protocol>
kernel_variant variant_of() {
  return {config, reinterpret_cast<const void*>(kernel_of<config, Protocol>), shared_bytes<config>};
}

}  // namespace untax::sm90
