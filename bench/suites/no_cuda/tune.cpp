#include "bench/suites/tune.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

tune_result run_tuning(const tune_options& /*options*/) {
  throw error(errc::unsupported,
              "tables are measured on GPUs, and this build has no CUDA: configure with the preset "
              "cuda, or -DUNTAX_CUDA=ON, where nvcc is installed");
}

}  // namespace untax::bench
