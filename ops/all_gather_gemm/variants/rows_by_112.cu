#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/all_gather_gemm/gather.cuh"
#include "ops/all_gather_gemm/variants.hpp"

namespace untax {

sm90::kernel_variant gather_rows_by_112() {
  return sm90::variant_of<sm90::tile_config{112, 2, 6, false}, gather_traffic>();
}

}  // namespace untax
