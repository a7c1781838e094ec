#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant rows_by_160() { return variant_of<tile_config{160, 2, 5, false}>(); }

}  // namespace untax::sm90
