#pragma once

#include "engines/sm90/gemm/variant.hpp"

namespace untax {

// The kernels that gather and multiply, one for each configuration of tiles that they are compiled
// for, each from its own file in variants/.
[[nodiscard]] sm90::kernel_variant gather_rows_by_256();
[[nodiscard]] sm90::kernel_variant gather_rows_by_224();
[[nodiscard]] sm90::kernel_variant gather_rows_by_160();
[[nodiscard]] sm90::kernel_variant gather_rows_by_128();
[[nodiscard]] sm90::kernel_variant gather_rows_by_112();
[[nodiscard]] sm90::kernel_variant gather_weights_by_128();
[[nodiscard]] sm90::kernel_variant gather_weights_by_64();
[[nodiscard]] sm90::kernel_variant gather_weights_by_64_clusters();
[[nodiscard]] sm90::kernel_variant gather_weights_by_32();
[[nodiscard]] sm90::kernel_variant gather_weights_by_16();
[[nodiscard]] sm90::kernel_variant gather_rows_by_128_pairs();
[[nodiscard]] sm90::kernel_variant gather_weights_by_128_fours();
[[nodiscard]] sm90::kernel_variant gather_weights_by_128_pairs();
[[nodiscard]] sm90::kernel_variant gather_weights_by_64_pairs();
[[nodiscard]] sm90::kernel_variant gather_weights_by_32_pairs();
[[nodiscard]] sm90::kernel_variant gather_weights_by_16_pairs();
[[nodiscard]] sm90::kernel_variant gather_packets_by_16();
[[nodiscard]] sm90::kernel_variant gather_packets_by_16_pairs();

}  // namespace untax
