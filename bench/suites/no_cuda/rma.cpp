#include "bench/suites/rma.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

rma_report run_rma_suite(const rma_suite_options& /*options*/) {
  throw error(
      errc::unsupported,
      "bench rma measures kernels, and this build has none: configure with the preset cuda, "
      "or -DUNTAX_CUDA=ON, where nvcc is installed");
}

int steps_of(const rma_suite_options& /*options*/) { return 1; }

}  // namespace untax::bench
