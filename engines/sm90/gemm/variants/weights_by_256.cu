#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_256() { return variant_of<tile_config{256, 2, 4, true}>(); }

}  // namespace untax::sm90
