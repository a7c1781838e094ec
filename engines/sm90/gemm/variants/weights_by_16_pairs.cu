#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_16_pairs() {
  return variant_of<tile_config{16, 1, 10, true, 1, true, 2}>();
}

}  // namespace untax::sm90
