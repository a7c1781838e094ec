#pragma once

#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <string>

namespace untax::sparse {

/// The cuSPARSE functions in use, resolved at run time.
struct cusparse_library {
  decltype(&::cusparseCreate) create = nullptr;
  decltype(&::cusparseGetProperty) property = nullptr;
  decltype(&::cusparseGetErrorString) error_string = nullptr;
  decltype(&::cusparseSetStream) set_stream = nullptr;
  decltype(&::cusparseCreateConstCsr) create_csr = nullptr;
  decltype(&::cusparseCreateConstCoo) create_coo = nullptr;
  decltype(&::cusparseCreateConstSlicedEll) create_slices = nullptr;
  decltype(&::cusparseDestroySpMat) destroy_matrix = nullptr;
  decltype(&::cusparseCreateDnVec) create_vector = nullptr;
  decltype(&::cusparseDestroyDnVec) destroy_vector = nullptr;
  decltype(&::cusparseDnVecSetValues) set_values = nullptr;
  decltype(&::cusparseSpMV_bufferSize) buffer_size = nullptr;
  decltype(&::cusparseSpMV_preprocess) preprocess = nullptr;
  decltype(&::cusparseSpMV) multiply = nullptr;

  std::string why_not;  ///< empty if all were found

  /// Loads the library the first time. It stays loaded.
  [[nodiscard]] static const cusparse_library& get();
  /// The cuSPARSE handle of the current device, which exists until the program ends. Throws
  /// `unsupported`.
  [[nodiscard]] cusparseHandle_t handle_here() const;
  /// Throws `unsupported` with the name of the call unless `status` is a success, so that an
  /// algorithm that the library does not support is skipped as a candidate.
  void require(cusparseStatus_t status, const char* call) const;
};

}  // namespace untax::sparse
