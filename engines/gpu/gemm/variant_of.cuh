#pragma once

#include "engines/gpu/gemm/kernel.cuh"
#include "engines/gpu/gemm/variant.hpp"

namespace untax::gpu {

template <tile_config c, class Protocol>
inline constexpr auto kernel_of =
    &gemm_kernel<c.block_n, c.cluster, c.stages, c.swap_ab, c.epilogue_buffers, c.warpgroup_split_k,
                 c.cluster_split_k, Protocol>;

template <tile_config config, class Protocol>
kernel_variant variant_of() {
  return {config, reinterpret_cast<const void*>(kernel_of<config, Protocol>), shared_bytes<config>};
}

}  // namespace untax::gpu
