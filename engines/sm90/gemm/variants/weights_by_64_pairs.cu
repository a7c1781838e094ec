#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_64_pairs() {
  return variant_of<tile_config{64, 1, 6, true, 1, true, 2}>();
}

}  // namespace untax::sm90
