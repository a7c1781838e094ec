#pragma once

#include "engines/gpu/gemm/kernel.cuh"
#include "engines/gpu/gemm/variant.hpp"

namespace untax::gpu {

template <tile_config c, class Io>
inline constexpr auto kernel_of =
    &gemm_kernel<c.block_n, c.cluster, c.stages, c.swap_ab, c.epilogue_buffers, c.warpgroup_split_k,
                 c.cluster_split_k, typename Io::source_type, typename Io::sink_type,
                 typename Io::senders_type>;

template <tile_config config, class Io>
kernel_variant variant_of() {
  return {config, reinterpret_cast<const void*>(kernel_of<config, Io>), shared_bytes<config>};
}

}  // namespace untax::gpu
