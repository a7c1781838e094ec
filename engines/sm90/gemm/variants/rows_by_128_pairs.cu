#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant rows_by_128_pairs() {
  return variant_of<tile_config{128, 2, 5, false, 1, false, 2}>();
}

}  // namespace untax::sm90
