#include "bench/suites/gemm.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

gemm_report run_gemm_suite(const gemm_suite_options& /*options*/) {
  throw error(errc::unsupported,
              "bench gemm measures a kernel, and this build has none: configure with the preset "
              "cuda, or -DUNTAX_CUDA=ON, where nvcc is installed");
}

}  // namespace untax::bench
