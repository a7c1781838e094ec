#include "bench/suites/cuda/gemm_library.cuh"

#include <dlfcn.h>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "bench/suites/cuda/gpu_team.cuh"

namespace untax::bench {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{64} << 20U;
constexpr int asked_ways = 8;

void require(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw error(errc::internal, fmt::format("{}: status {}", call, static_cast<int>(status)));
}

blas_library load() {
  void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libcublasLt.so.12", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw error(errc::unsupported,
                "bench gemm compares with cuBLASLt, and libcublasLt.so.13 cannot be loaded; "
                "LD_LIBRARY_PATH can name its folder");
  }
  const auto find = [&]<class Function>(const char* name, Function& found) {
    found = reinterpret_cast<Function>(dlsym(library, name));
    if (found == nullptr)
      throw error(errc::unsupported, fmt::format("libcublasLt.so has no {}", name));
  };
  blas_library l;
  find("cublasLtCreate", l.create);
  find("cublasLtGetVersion", l.version);
  find("cublasLtMatmul", l.matmul);
  find("cublasLtMatmulAlgoGetHeuristic", l.heuristic);
  find("cublasLtMatmulDescCreate", l.describe);
  find("cublasLtMatmulDescDestroy", l.forget);
  find("cublasLtMatmulDescSetAttribute", l.set);
  find("cublasLtMatrixLayoutCreate", l.lay_out);
  find("cublasLtMatrixLayoutDestroy", l.forget_layout);
  find("cublasLtMatmulPreferenceCreate", l.prefer);
  find("cublasLtMatmulPreferenceDestroy", l.forget_preference);
  find("cublasLtMatmulPreferenceSetAttribute", l.set_preference);
  require(l.create(&l.handle), "cublasLtCreate");
  return l;
}

}  // namespace

const blas_library& blas_library::get() {
  static const blas_library library = load();
  return library;
}

std::string blas_library::name() const {
  const std::size_t v = version();
  return fmt::format("cuBLASLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

library_gemm::library_gemm(std::int64_t m, std::int64_t n, std::int64_t k, dtype type)
    : library_(blas_library::get()) {
  const cudaDataType_t element = type == dtype::f16 ? CUDA_R_16F : CUDA_R_16BF;
  check_cuda(cudaMalloc(&workspace_, workspace_bytes), "the library's workspace");
  // The library counts down columns: to it, C is C^T = B * A^T, and B is stored transposed.
  require(library_.describe(&what_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const cublasOperation_t transposed = CUBLAS_OP_T;
  require(library_.set(what_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
  const auto rows = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
  require(library_.lay_out(&b_, element, rows(k), rows(n), k), "cublasLtMatrixLayoutCreate");
  require(library_.lay_out(&a_, element, rows(k), rows(m), k), "cublasLtMatrixLayoutCreate");
  require(library_.lay_out(&c_, element, rows(n), rows(m), n), "cublasLtMatrixLayoutCreate");
  cublasLtMatmulPreference_t preference = nullptr;
  require(library_.prefer(&preference), "cublasLtMatmulPreferenceCreate");
  require(library_.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                  &workspace_bytes, sizeof workspace_bytes),
          "cublasLtMatmulPreferenceSetAttribute");
  cublasLtMatmulHeuristicResult_t found[asked_ways] = {};
  int count = 0;
  require(library_.heuristic(library_.handle, what_, b_, a_, c_, c_, preference, asked_ways, found,
                             &count),
          "cublasLtMatmulAlgoGetHeuristic");
  library_.forget_preference(preference);
  for (int i = 0; i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS) ways_.push_back({found[i].algo});
  }
  if (ways_.empty())
    throw error(errc::unsupported,
                fmt::format("cuBLASLt cannot multiply m {}, n {}, k {}", m, n, k));
}

library_gemm::~library_gemm() {
  library_.forget(what_);
  library_.forget_layout(a_);
  library_.forget_layout(b_);
  library_.forget_layout(c_);
  cudaFree(workspace_);
}

void library_gemm::run(int way, const void* a, const void* b, void* c, cudaStream_t stream) const {
  const float one = 1;
  const float zero = 0;
  require(library_.matmul(library_.handle, what_, &one, b, b_, a, a_, &zero, c, c_, c, c_,
                          &ways_[static_cast<std::size_t>(way)].algorithm, workspace_,
                          workspace_bytes, stream),
          "cublasLtMatmul");
}

}  // namespace untax::bench
