#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_64() { return variant_of<tile_config{64, 1, 6, true, 2, true}>(); }

}  // namespace untax::sm90
