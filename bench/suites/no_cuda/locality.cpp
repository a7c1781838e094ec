#include "bench/suites/locality.hpp"
#include "bench/suites/sides.hpp"

#include <untax/core/error.hpp>

namespace untax::bench {

namespace {

[[noreturn]] void refuse() {
  throw error(
      errc::unsupported,
      "bench locality measures a GPU, and this build has no CUDA: configure with the preset "
      "cuda, or -DUNTAX_CUDA=ON, where nvcc is installed; untax locality simulates without");
}

}  // namespace

replay_report run_replay_suite(const replay_suite_options& /*options*/) { refuse(); }

side_report run_side_suite(const side_suite_options& /*options*/) { refuse(); }

}  // namespace untax::bench
