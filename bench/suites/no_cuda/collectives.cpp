#include "bench/suites/collectives.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

collective_report run_collective_suite(const collective_suite_options& /*options*/) {
  throw error(errc::unsupported,
              "this program was built without CUDA, and this suite measures GPUs; configure with "
              "-DUNTAX_CUDA=ON where nvcc is");
}

}  // namespace untax::bench
