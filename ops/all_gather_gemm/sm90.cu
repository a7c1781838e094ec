#include <string>

#include <untax/core/error.hpp>

#include "ops/all_gather_gemm/device.hpp"

namespace untax {

std::unique_ptr<device_operator> all_gather_gemm_on_device(world& w,
                                                           const all_gather_gemm_problem& problem,
                                                           const operator_options& options) {
  if (options.how == pattern::automatic) return all_gather_gemm_by_library(w, problem);
  throw error(errc::unsupported, "rank " + std::to_string(w.rank()) +
                                     ": all_gather_gemm: " + std::string(name_of(options.how)) +
                                     " is not there yet in worlds of GPUs; bulk_library is");
}

}  // namespace untax
