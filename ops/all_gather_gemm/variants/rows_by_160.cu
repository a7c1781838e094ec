#include "engines/sm90/gemm/variants/variant_of.cuh"
#include "ops/all_gather_gemm/gather.cuh"
#include "ops/all_gather_gemm/variants.hpp"

namespace untax {

sm90::kernel_variant gather_rows_by_160() {
  return sm90::variant_of<sm90::tile_config{160, 2, 5, false}, gather_traffic>();
}

}  // namespace untax
