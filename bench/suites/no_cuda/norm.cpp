#include "bench/suites/norm.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

norm_report run_norm_suite(const norm_suite_options& /*options*/) {
  throw error(errc::unsupported,
              "bench all-reduce-norm measures GPUs, and this build has no CUDA: configure with the "
              "preset cuda, or -DUNTAX_CUDA=ON, where nvcc is installed");
}

}  // namespace untax::bench
