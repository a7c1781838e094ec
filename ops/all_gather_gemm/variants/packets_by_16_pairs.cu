#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/all_gather_gemm/packets.cuh"
#include "ops/all_gather_gemm/variants.hpp"

namespace untax {

sm90::kernel_variant gather_packets_by_16_pairs() {
  return sm90::variant_of<sm90::tile_config{16, 1, 10, true, 1, true, 2}, packet_gather>();
}

}  // namespace untax
