#pragma once

#include "engines/gpu/gemm/config.hpp"

// The compiled kernels, by their users. The build makes one source file per line, named by the
// comment behind it (cmake/untax_kernels.cmake). Numbers are the fields of tile_config: block_n,
// cluster, stages, swap_ab, epilogue_buffers, warpgroup_split_k, cluster_split_k.
namespace untax::gpu {

/// Kernels of the GEMM alone: all tiles that exist. If the model expects the same time of several
/// tiles, the first one is chosen.
inline constexpr tile_config gemm_kernels[] = {
    {256, 2, 4, false, 2, false, 1},  // rows_by_256
    {224, 2, 4, false, 2, false, 1},  // rows_by_224
    {192, 2, 4, false, 3, false, 1},  // rows_by_192
    {160, 2, 5, false, 2, false, 1},  // rows_by_160
    {128, 2, 6, false, 2, false, 1},  // rows_by_128
    {112, 2, 6, false, 2, false, 1},  // rows_by_112
    {128, 2, 6, true, 2, false, 1},   // weights_by_128
    {16, 1, 10, true, 2, true, 1},    // weights_by_16
    {32, 1, 8, true, 2, true, 1},     // weights_by_32
    {64, 1, 6, true, 2, true, 1},     // weights_by_64
    {64, 4, 6, true, 2, true, 1},     // weights_by_64_clusters
    {16, 1, 10, true, 1, true, 2},    // weights_by_16_pairs
    {32, 1, 8, true, 1, true, 2},     // weights_by_32_pairs
    {64, 1, 6, true, 1, true, 2},     // weights_by_64_pairs
    {128, 1, 5, true, 1, false, 2},   // weights_by_128_pairs
    {128, 1, 5, true, 1, false, 4},   // weights_by_128_fours
    {128, 1, 5, true, 1, false, 8},   // weights_by_128_eights
    {112, 1, 6, true, 1, false, 2},   // weights_by_112_pairs
    {128, 2, 5, false, 1, false, 2},  // rows_by_128_pairs
    {144, 1, 5, true, 3, false, 1},   // weights_by_144
    {160, 2, 5, true, 4, false, 1},   // weights_by_160
    {192, 1, 4, true, 3, false, 1},   // weights_by_192
    {224, 2, 4, true, 3, false, 1},   // weights_by_224
    {160, 1, 4, true, 4, false, 2},   // weights_by_160_pairs
    {96, 1, 4, true, 4, true, 2},     // weights_by_96_pairs
    {64, 1, 6, true, 1, true, 4},     // weights_by_64_fours
    {64, 1, 5, true, 1, true, 8},     // weights_by_64_eights
    {16, 1, 8, true, 1, true, 4},     // weights_by_16_fours
    {32, 1, 7, true, 1, true, 4},     // weights_by_32_fours
    {96, 2, 6, false, 2, false, 1},   // rows_by_96
    {80, 2, 7, true, 2, false, 1},    // weights_by_80
    {168, 1, 5, true, 2, false, 1},   // weights_by_168
    {200, 1, 4, true, 5, false, 1},   // weights_by_200
};

/// Kernels that gather A and multiply.
inline constexpr tile_config gather_kernels[] = {
    {256, 2, 4, false, 2, false, 1},  // rows_by_256
    {224, 2, 4, false, 2, false, 1},  // rows_by_224
    {160, 2, 5, false, 2, false, 1},  // rows_by_160
    {128, 2, 6, false, 2, false, 1},  // rows_by_128
    {112, 2, 6, false, 2, false, 1},  // rows_by_112
    {128, 2, 6, true, 2, false, 1},   // weights_by_128
    {16, 1, 10, true, 2, true, 1},    // weights_by_16
    {32, 1, 8, true, 2, true, 1},     // weights_by_32
    {64, 1, 6, true, 2, true, 1},     // weights_by_64
    {64, 4, 6, true, 2, true, 1},     // weights_by_64_clusters
    {16, 1, 10, true, 1, true, 2},    // weights_by_16_pairs
    {32, 1, 8, true, 1, true, 2},     // weights_by_32_pairs
    {64, 1, 6, true, 1, true, 2},     // weights_by_64_pairs
    {128, 1, 5, true, 1, false, 2},   // weights_by_128_pairs
    {128, 1, 5, true, 1, false, 4},   // weights_by_128_fours
    {128, 2, 5, false, 1, false, 2},  // rows_by_128_pairs
};

/// Kernels that gather A as packets, which the MMA warpgroups load themselves.
inline constexpr tile_config packet_kernels[] = {
    {16, 1, 10, true, 2, true, 1},  // by_16
    {16, 1, 10, true, 1, true, 2},  // by_16_pairs
};

/// Kernels that multiply and scatter C. With 256 columns, a whole tile of results is being stored
/// while the next tile is multiplied: 4 sub-tiles per warpgroup, which leaves room for 3 stages.
inline constexpr tile_config scatter_kernels[] = {
    {256, 2, 3, false, 4, false, 1},  // rows_by_256
    {192, 2, 4, false, 3, false, 1},  // rows_by_192
    {128, 2, 6, false, 2, false, 1},  // rows_by_128
    {128, 2, 6, true, 2, false, 1},   // weights_by_128
    {64, 1, 6, true, 2, true, 1},     // weights_by_64
    {16, 1, 10, true, 2, true, 1},    // weights_by_16
    {168, 1, 4, true, 4, false, 1},   // weights_by_168
    {192, 1, 4, true, 3, false, 1},   // weights_by_192
    {144, 1, 5, true, 3, false, 1},   // weights_by_144
    {224, 2, 3, true, 5, false, 1},   // weights_by_224
};

/// Kernels that multiply and send partial results to the ranks that add them. Without swap_ab they
/// have as many epilogue buffers as the kernels that scatter C.
inline constexpr tile_config sums_kernels[] = {
    {256, 2, 3, false, 4, false, 1},  // rows_by_256
    {128, 2, 5, false, 2, false, 1},  // rows_by_128
    {128, 2, 6, true, 1, false, 1},   // weights_by_128
    {64, 1, 6, true, 1, true, 1},     // weights_by_64
    {16, 1, 10, true, 1, true, 1},    // weights_by_16
};

}  // namespace untax::gpu
