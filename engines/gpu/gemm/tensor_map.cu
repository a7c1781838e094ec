#include "engines/gpu/gemm/tensor_map.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::gpu {
namespace {

using encode_function = decltype(&cuTensorMapEncodeTiled);

encode_function look_up() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how{};
  const cudaError_t result = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                              12000, cudaEnableDefault, &how);
  if (result != cudaSuccess || how != cudaDriverEntryPointSuccess || found == nullptr) {
    cudaGetLastError();
    throw error(errc::unsupported,
                "the CUDA driver has no cuTensorMapEncodeTiled; GEMMs need driver 525 or newer");
  }
  return reinterpret_cast<encode_function>(found);
}

CUtensorMap map_of(const matrix_at& matrix, int dimensions, int layers, std::int64_t between,
                   dtype type, const tma_tile_form& tma_tile, int together = 1) {
  static const encode_function encode = look_up();
  CUtensorMap map;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(matrix.columns),
                              static_cast<cuuint64_t>(matrix.rows),
                              static_cast<cuuint64_t>(layers)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(matrix.stride) * 2,
                                static_cast<cuuint64_t>(between) * 2};
  const cuuint32_t extent[] = {static_cast<cuuint32_t>(tma_tile.columns),
                               static_cast<cuuint32_t>(tma_tile.rows),
                               static_cast<cuuint32_t>(together)};
  const cuuint32_t steps[] = {1, 1, 1};
  const CUresult result = encode(
      &map, type == dtype::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      static_cast<cuuint32_t>(dimensions), const_cast<void*>(matrix.data), sizes, strides, extent,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, tma_tile.swizzle,
      tma_tile.together == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                               : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return map;
  throw error(errc::invalid_argument,
              fmt::format("a matrix of {} x {} elements at {} cannot be read by TMA "
                          "(error {}); it has to begin at a multiple of 16 bytes",
                          matrix.rows, matrix.columns, matrix.data, static_cast<int>(result)));
}

}  // namespace

CUtensorMap tensor_map_of(const matrix_at& matrix, dtype type, const tma_tile_form& form) {
  return map_of(matrix, 2, 1, 0, type, form);
}

operand_tail gemm_maps::tail(const matrix_at& matrix, const CUtensorMap& whole,
                             const operand_end& end) const {
  if (end.rows == 0) return {whole, end.begin, 0};
  return {tensor_map_of(matrix, type, {end.rows, block_k, read_together(plan)}), end.begin,
          end.rows};
}

void gemm_maps::describe_operands(gemm_matrices& of, const matrix_at& in_a,
                                  const matrix_at& in_b) const {
  of.a = a(in_a);
  of.b = b(in_b);
  const bool swaps = plan.config.swap_ab;
  const matrix_at& m_operand = swaps ? in_b : in_a;
  const matrix_at& n_operand = swaps ? in_a : in_b;
  of.m_tail = tail(m_operand, swaps ? of.b : of.a, m_end_of(plan, m_operand.rows));
  of.n_tail = tail(n_operand, swaps ? of.a : of.b, n_end_of(plan, n_operand.rows));
}

void gemm_maps::describe_own_shard(gemm_matrices& of, const matrix_at& own) const {
  if (plan.config.swap_ab) {
    of.n_tail = tail(own, of.a, n_end_of(plan, own.rows));
  } else {
    of.m_tail = tail(own, of.a, m_end_of(plan, own.rows));
  }
}

CUtensorMap moved_map_of(const tma_tiles_at& tma_tiles, dtype type) {
  return map_of(
      tma_tiles.first, 3, tma_tiles.layers, tma_tiles.between, type,
      {tma_tiles.tma_tile_rows, tma_tiles.tma_tile_columns, 256, CU_TENSOR_MAP_SWIZZLE_NONE});
}

CUtensorMap panel_map_of(const matrix_at& matrix, dtype type, int rows, int panels) {
  const matrix_at panel{matrix.data, matrix.rows, block_k, matrix.stride};
  // Reading 128 bytes at once is 1 to 2 % quicker here than 256.
  return map_of(panel, 3, static_cast<int>(matrix.columns / block_k), block_k, type,
                {rows, block_k, 128}, panels);
}

CUtensorMap sequences_map_of(const matrix_at& matrix, dtype type, int tma_tile_rows) {
  // The rows appear twice: along y, where the TMA tile is clipped, and along the third axis, which
  // selects where it begins. The map begins before the matrix, so that no coordinate is negative.
  const std::int64_t before = tma_tile_rows * matrix.stride * 2;
  const matrix_at tma_tile{static_cast<const std::byte*>(matrix.data) - before, tma_tile_rows,
                           matrix.columns, matrix.stride};
  return map_of(tma_tile, 3, static_cast<int>(matrix.rows) + tma_tile_rows, matrix.stride, type,
                {tma_tile_rows});
}

}  // namespace untax::gpu
