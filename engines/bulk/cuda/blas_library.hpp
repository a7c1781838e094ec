#pragma once

#include <cublasLt.h>

#include <string>

namespace untax::bulk {

/// The functions of cuBLASLt that are used, found in the library at run time.
struct blas_library {
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtGetVersion) version = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&::cublasLtMatmulDescCreate) describe = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) forget = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) lay_out = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) forget_layout = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) prefer = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) forget_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;

  std::string why_not;  ///< empty if all were found

  /// Loads the library the first time. It stays loaded.
  [[nodiscard]] static const blas_library& get();
  /// The library's handle for the current device. It lives until the program ends. Throws
  /// `internal`.
  [[nodiscard]] cublasLtHandle_t handle_here() const;
};

/// Throws `internal` with the name of the call if `status` is an error.
void require(cublasStatus_t status, const char* call);

}  // namespace untax::bulk
