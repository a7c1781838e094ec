#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_128() { return variant_of<tile_config{128, 2, 6, true}>(); }

}  // namespace untax::sm90
