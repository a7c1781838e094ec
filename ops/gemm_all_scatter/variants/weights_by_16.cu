#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/gemm_all_scatter/scatter.cuh"
#include "ops/gemm_all_scatter/variants.hpp"

namespace untax {

sm90::kernel_variant scatter_weights_by_16() {
  return sm90::variant_of<sm90::tile_config{16, 1, 10, true, 2, true}, scatter_traffic>();
}

}  // namespace untax
