#include "bench/suites/locality.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

replay_report run_replay_suite(const replay_suite_options& /*options*/) {
  throw error(
      errc::unsupported,
      "bench locality measures a GPU, and this build has no CUDA: configure with the preset "
      "cuda, or -DUNTAX_CUDA=ON, where nvcc is installed; untax locality simulates without");
}

}  // namespace untax::bench
