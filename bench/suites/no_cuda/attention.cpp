#include "bench/suites/attention.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

attention_report run_attention_suite(const attention_suite_options& /*options*/) {
  throw error(errc::unsupported,
              "bench flash-decode measures GPUs, and this build has no CUDA: configure with the "
              "preset cuda, or -DUNTAX_CUDA=ON, where nvcc is installed");
}

}  // namespace untax::bench
