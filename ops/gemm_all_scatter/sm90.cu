#include <string>

#include <untax/core/error.hpp>

#include "ops/gemm_all_scatter/device.hpp"

namespace untax {

std::unique_ptr<device_operator> gemm_all_scatter_on_device(world& w,
                                                            const gemm_all_scatter_problem& problem,
                                                            const operator_options& options,
                                                            std::int64_t /*between*/) {
  if (options.how == pattern::automatic) return gemm_all_scatter_by_library(w, problem);
  throw error(errc::unsupported, "rank " + std::to_string(w.rank()) +
                                     ": gemm_all_scatter: " + std::string(name_of(options.how)) +
                                     " is not there yet in worlds of GPUs; bulk_library is");
}

}  // namespace untax
