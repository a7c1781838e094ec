#pragma once

#include "engines/sm90/gemm/variant.hpp"

namespace untax {

// The kernels that multiply and scatter, one for each configuration of tiles that they are compiled
// for, each from its own file in variants/.
[[nodiscard]] sm90::kernel_variant scatter_rows_by_256();
[[nodiscard]] sm90::kernel_variant scatter_rows_by_192();
[[nodiscard]] sm90::kernel_variant scatter_rows_by_128();
[[nodiscard]] sm90::kernel_variant scatter_weights_by_128();
[[nodiscard]] sm90::kernel_variant scatter_weights_by_64();
[[nodiscard]] sm90::kernel_variant scatter_weights_by_16();

}  // namespace untax
