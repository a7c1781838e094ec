#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_128_pairs() {
  return variant_of<tile_config{128, 1, 5, true, 1, false, 2}>();
}

}  // namespace untax::sm90
