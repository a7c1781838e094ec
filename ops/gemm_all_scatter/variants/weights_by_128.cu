#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/gemm_all_scatter/scatter.cuh"
#include "ops/gemm_all_scatter/variants.hpp"

namespace untax {

sm90::kernel_variant scatter_weights_by_128() {
  return sm90::variant_of<sm90::tile_config{128, 2, 6, true}, scatter_traffic>();
}

}  // namespace untax
