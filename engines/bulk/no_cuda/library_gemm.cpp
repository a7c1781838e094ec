#include "engines/bulk/library_gemm.hpp"

#include <untax/core/error.hpp>

namespace untax::bulk {

const availability& blas() {
  static const availability missing{false,
                                    "this program was built without CUDA; configure with "
                                    "-DUNTAX_CUDA=ON where nvcc is installed"};
  return missing;
}

class library_gemm::call {};

library_gemm::library_gemm(const library_product& /*product*/) {
  throw error(errc::unsupported, "this needs cuBLASLt: " + blas().text);
}
library_gemm::library_gemm(library_gemm&&) noexcept = default;
library_gemm& library_gemm::operator=(library_gemm&&) noexcept = default;
library_gemm::~library_gemm() = default;

int library_gemm::ways() const noexcept { return 0; }
void library_gemm::run(int /*way*/, const void* /*a*/, const void* /*b*/, void* /*c*/,
                       stream_ref /*stream*/) const {}
void library_gemm::prefer(int /*way*/) noexcept {}
void library_gemm::run(const void* /*a*/, const void* /*b*/, void* /*c*/,
                       stream_ref /*stream*/) const {}
void library_gemm::settle() {}
void library_gemm::set_rows(std::int64_t /*m*/) {}
void library_gemm::vary_rows(std::int64_t /*least*/) {}

}  // namespace untax::bulk
