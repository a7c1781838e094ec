#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_32_pairs() {
  return variant_of<tile_config{32, 1, 8, true, 1, true, 2}>();
}

}  // namespace untax::sm90
