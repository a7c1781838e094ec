#include "engines/sm90/gemm/variants/variant_of.cuh"

namespace untax::sm90 {

kernel_variant rows_by_144() { return variant_of<tile_config{144, 2, 5, false, 3}>(); }

}  // namespace untax::sm90
