#include "engines/sm90/gemm/tensor_map.hpp"

#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::sm90 {
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

CUtensorMap map_of(const matrix_at& matrix, dtype type, int box_rows, int box_columns,
                   CUtensorMapL2promotion together) {
  static const encode_function encode = look_up();
  CUtensorMap map;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(matrix.columns),
                              static_cast<cuuint64_t>(matrix.rows)};
  const cuuint64_t row_bytes[] = {static_cast<cuuint64_t>(matrix.stride) * 2};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns),
                            static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[] = {1, 1};
  const CUresult result = encode(
      &map, type == dtype::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      2, const_cast<void*>(matrix.data), sizes, row_bytes, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, together,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return map;
  throw error(errc::invalid_argument,
              fmt::format("a matrix of {} x {} elements at {} cannot be read by the copy engine "
                          "(error {}); it has to begin at a multiple of 16 bytes",
                          matrix.rows, matrix.columns, matrix.data, static_cast<int>(result)));
}

}  // namespace

CUtensorMap tensor_map_of(const matrix_at& matrix, dtype type, int box_rows, int together) {
  return map_of(
      matrix, type, box_rows, slice_depth,
      together == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
}

CUtensorMap result_map_of(const matrix_at& matrix, dtype type, const tile_config& c) {
  return map_of(matrix, type, c_box_rows(c), c_box_columns(c), CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
}

}  // namespace untax::sm90
