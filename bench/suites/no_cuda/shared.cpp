#include "bench/suites/shared.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

shared_report run_shared_suite(const shared_options& /*options*/) {
  throw error(
      errc::unsupported,
      "ranks that share a GPU are measured on one, and this build has no CUDA: configure with the "
      "preset cuda, or -DUNTAX_CUDA=ON, where nvcc is installed");
}

}  // namespace untax::bench
