#include "bench/suites/flash_attention.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

flash_report run_flash_suite(const flash_suite_options& /*options*/) {
  throw error(errc::unsupported,
              "bench flash-attention measures a kernel, and this build has none: configure with "
              "the preset cuda, or -DUNTAX_CUDA=ON, where nvcc is installed");
}

}  // namespace untax::bench
