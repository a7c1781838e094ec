#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_64_clusters() {
  return variant_of<tile_config{64, 4, 6, true, 2, true}>();
}

}  // namespace untax::sm90
