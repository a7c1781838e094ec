#include "bench/suites/overlap.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

overlap_report run_overlap_suite(const overlap_options& options) {
  throw error(errc::unsupported,
              "the patterns of " + options.operator_name +
                  " are measured on GPUs, and this build has no CUDA: configure with the preset "
                  "cuda, or -DUNTAX_CUDA=ON, where nvcc is installed");
}

}  // namespace untax::bench
