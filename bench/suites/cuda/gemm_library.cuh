#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include <untax/core/types.hpp>

namespace untax::bench {

/// cuBLASLt, found at run time.
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
  cublasLtHandle_t handle = nullptr;

  /// Loads it the first time. Throws `unsupported` if it is not there.
  [[nodiscard]] static const blas_library& get();
  /// "cuBLASLt 13.0.2".
  [[nodiscard]] std::string name() const;
};

/// C[m, n] = A[m, k] * B[n, k]^T by cuBLASLt, in each of the ways that its heuristics propose.
class library_gemm {
 public:
  library_gemm(std::int64_t m, std::int64_t n, std::int64_t k, dtype type);
  library_gemm(const library_gemm&) = delete;
  library_gemm& operator=(const library_gemm&) = delete;
  ~library_gemm();

  [[nodiscard]] int ways() const noexcept { return static_cast<int>(ways_.size()); }
  void run(int way, const void* a, const void* b, void* c, cudaStream_t stream) const;

 private:
  struct way {
    cublasLtMatmulAlgo_t algorithm;
  };

  const blas_library& library_;
  cublasLtMatmulDesc_t what_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  void* workspace_ = nullptr;
  std::vector<way> ways_;
};

}  // namespace untax::bench
