#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant rows_by_112() { return variant_of<tile_config{112, 2, 6, false}>(); }

}  // namespace untax::sm90
