#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant weights_by_32() { return variant_of<tile_config{32, 1, 8, true, 2, true}>(); }

}  // namespace untax::sm90
