#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/all_gather_gemm/gather.cuh"
#include "ops/all_gather_gemm/variants.hpp"

namespace untax {

sm90::kernel_variant gather_weights_by_128_fours() {
  return sm90::variant_of<sm90::tile_config{128, 1, 5, true, 1, false, 4}, gather_traffic>();
}

}  // namespace untax
