#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/gemm_all_scatter/scatter.cuh"
#include "ops/gemm_all_scatter/variants.hpp"

namespace untax {

sm90::kernel_variant scatter_rows_by_192() {
  return sm90::variant_of<sm90::tile_config{192, 2, 4, false, 3}, scatter_traffic>();
}

}  // namespace untax
