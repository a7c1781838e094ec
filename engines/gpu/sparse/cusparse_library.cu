#include "engines/gpu/sparse/cusparse_library.hpp"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/sparse/device_spmv.hpp>

namespace untax::sparse {
namespace {

template <class Function>
void find(void* library, const char* name, Function& found, std::string& why_not) {
  found = reinterpret_cast<Function>(dlsym(library, name));
  if (found == nullptr && why_not.empty()) why_not = fmt::format("libcusparse.so has no {}", name);
}

cusparse_library load() {
  cusparse_library l;
  void* library = dlopen("libcusparse.so.12", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libcusparse.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    l.why_not = "libcusparse.so.12 cannot be loaded; LD_LIBRARY_PATH can name its folder";
    return l;
  }
  find(library, "cusparseCreate", l.create, l.why_not);
  find(library, "cusparseGetProperty", l.property, l.why_not);
  find(library, "cusparseGetErrorString", l.error_string, l.why_not);
  find(library, "cusparseSetStream", l.set_stream, l.why_not);
  find(library, "cusparseCreateConstCsr", l.create_csr, l.why_not);
  find(library, "cusparseCreateConstCoo", l.create_coo, l.why_not);
  find(library, "cusparseCreateConstSlicedEll", l.create_slices, l.why_not);
  find(library, "cusparseDestroySpMat", l.destroy_matrix, l.why_not);
  find(library, "cusparseCreateDnVec", l.create_vector, l.why_not);
  find(library, "cusparseDestroyDnVec", l.destroy_vector, l.why_not);
  find(library, "cusparseDnVecSetValues", l.set_values, l.why_not);
  find(library, "cusparseSpMV_bufferSize", l.buffer_size, l.why_not);
  find(library, "cusparseSpMV_preprocess", l.preprocess, l.why_not);
  find(library, "cusparseSpMV", l.multiply, l.why_not);
  return l;
}

std::string look() {
  const cusparse_library& library = cusparse_library::get();
  if (!library.why_not.empty()) return library.why_not;
  int version[3] = {};
  library.property(MAJOR_VERSION, version);
  library.property(MINOR_VERSION, version + 1);
  library.property(PATCH_LEVEL, version + 2);
  return fmt::format("cuSPARSE {}.{}.{}", version[0], version[1], version[2]);
}

}  // namespace

const cusparse_library& cusparse_library::get() {
  static const cusparse_library library = load();
  return library;
}

void cusparse_library::require(cusparseStatus_t status, const char* call) const {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  throw error(errc::unsupported, fmt::format("{}: {}", call, error_string(status)));
}

cusparseHandle_t cusparse_library::handle_here() const {
  if (!why_not.empty()) throw error(errc::unsupported, "this needs cuSPARSE: " + why_not);
  static std::mutex mutex;
  static std::map<int, cusparseHandle_t> handles;
  int device = 0;
  (void)cudaGetDevice(&device);
  const std::scoped_lock lock(mutex);
  cusparseHandle_t& handle = handles[device];
  if (handle == nullptr) require(create(&handle), "cusparseCreate");
  return handle;
}

const std::string& cusparse_text() {
  static const std::string text = look();
  return text;
}

}  // namespace untax::sparse
