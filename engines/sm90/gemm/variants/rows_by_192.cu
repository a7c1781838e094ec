#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant rows_by_192() { return variant_of<tile_config{192, 2, 4, false, 3}>(); }

}  // namespace untax::sm90
