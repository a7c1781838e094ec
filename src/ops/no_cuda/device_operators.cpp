#include <string>
#include <string_view>

#include <untax/core/error.hpp>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/common/without_cuda.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_reduce_common/device.hpp"

namespace untax {

void refuse_without_cuda(const world& w, std::string_view name) {
  throw error(errc::unsupported,
              "rank " + std::to_string(w.rank()) + ": " + std::string(name) +
                  ": this untax was built without CUDA, so it does not run on GPUs; build it with "
                  "-DUNTAX_CUDA=ON (or --preset cuda) where nvcc is");
}

std::unique_ptr<device_operator> all_gather_gemm_on_device(
    world& w, const all_gather_gemm_problem& /*problem*/, const operator_options& /*options*/,
    gpu::room_pool* /*rooms*/) {
  refuse_without_cuda(w, "all_gather_gemm");
}
std::unique_ptr<device_operator> gemm_all_scatter_on_device(
    world& w, const gemm_all_scatter_problem& /*problem*/, const operator_options& /*options*/,
    std::int64_t /*between*/, gpu::room_pool* /*rooms*/) {
  refuse_without_cuda(w, "gemm_all_scatter");
}
std::unique_ptr<device_operator> sums_on_device(world& w, const device_sum& sum,
                                                const operator_options& /*options*/,
                                                const symmetric_result& /*result*/,
                                                gpu::room_pool* /*rooms*/) {
  refuse_without_cuda(w, sum.operator_name);
}
std::unique_ptr<device_operator> lonely_sum_on_device(world& w, const device_sum& sum,
                                                      pattern /*how*/) {
  refuse_without_cuda(w, sum.operator_name);
}

}  // namespace untax
