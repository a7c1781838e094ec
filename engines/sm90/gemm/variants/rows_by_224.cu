#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant rows_by_224() { return variant_of<tile_config{224, 2, 4, false}>(); }

}  // namespace untax::sm90
