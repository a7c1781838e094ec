#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/all_gather_gemm/gather.cuh"
#include "ops/all_gather_gemm/variants.hpp"

namespace untax {

sm90::kernel_variant gather_weights_by_64_pairs() {
  return sm90::variant_of<sm90::tile_config{64, 1, 6, true, 1, true, 2}, gather_traffic>();
}

}  // namespace untax
