#include "engines/bulk/cuda/blas_library.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <mutex>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/bulk/library_gemm.hpp"

namespace untax::bulk {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function, std::string& why_not) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && why_not.empty())
    why_not = fmt::format("libcublasLt.so has no {}", name);
}

blas_library load() {
  blas_library l;
  void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libcublasLt.so.12", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    l.why_not = "libcublasLt.so.13 cannot be loaded; LD_LIBRARY_PATH can name its folder";
    return l;
  }
  find(library, "cublasLtCreate", l.create, l.why_not);
  find(library, "cublasLtGetVersion", l.version, l.why_not);
  find(library, "cublasLtMatmul", l.matmul, l.why_not);
  find(library, "cublasLtMatmulAlgoGetHeuristic", l.heuristic, l.why_not);
  find(library, "cublasLtMatmulDescCreate", l.describe, l.why_not);
  find(library, "cublasLtMatmulDescDestroy", l.forget, l.why_not);
  find(library, "cublasLtMatmulDescSetAttribute", l.set, l.why_not);
  find(library, "cublasLtMatrixLayoutCreate", l.lay_out, l.why_not);
  find(library, "cublasLtMatrixLayoutDestroy", l.forget_layout, l.why_not);
  find(library, "cublasLtMatmulPreferenceCreate", l.prefer, l.why_not);
  find(library, "cublasLtMatmulPreferenceDestroy", l.forget_preference, l.why_not);
  find(library, "cublasLtMatmulPreferenceSetAttribute", l.set_preference, l.why_not);
  return l;
}

availability look() {
  const blas_library& library = blas_library::get();
  if (!library.why_not.empty()) return {false, library.why_not};
  const std::size_t v = library.version();
  return {true, fmt::format("cuBLASLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100)};
}

}  // namespace

void require(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw error(errc::internal, fmt::format("{}: status {}", call, static_cast<int>(status)));
}

const blas_library& blas_library::get() {
  static const blas_library library = load();
  return library;
}

cublasLtHandle_t blas_library::handle_here() const {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  int device = 0;
  (void)cudaGetDevice(&device);
  const std::scoped_lock lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (handle == nullptr) require(create(&handle), "cublasLtCreate");
  return handle;
}

const availability& blas() {
  static const availability result = look();
  return result;
}

}  // namespace untax::bulk
