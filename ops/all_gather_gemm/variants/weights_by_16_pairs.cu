#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/all_gather_gemm/gather.cuh"
#include "ops/all_gather_gemm/variants.hpp"

namespace untax {

sm90::kernel_variant gather_weights_by_16_pairs() {
  return sm90::variant_of<sm90::tile_config{16, 1, 10, true, 1, true, 2}, gather_traffic>();
}

}  // namespace untax
