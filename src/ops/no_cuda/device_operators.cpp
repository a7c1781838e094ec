#include <string>
#include <string_view>

#include <untax/core/error.hpp>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_reduce_norm/device.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_reduce_common/device.hpp"
#include "ops/merge_partial_attention/backend.hpp"

namespace untax {
namespace {

[[noreturn]] void refuse(const world& w, std::string_view name) {
  throw error(errc::unsupported,
              "rank " + std::to_string(w.rank()) + ": " + std::string(name) +
                  ": this untax was built without CUDA, so it does not run on GPUs; build it with "
                  "-DUNTAX_CUDA=ON (or --preset cuda) where nvcc is");
}

}  // namespace

std::unique_ptr<device_operator> all_gather_gemm_on_device(
    world& w, const all_gather_gemm_problem& /*problem*/, const operator_options& /*options*/,
    gpu::room_pool* /*rooms*/) {
  refuse(w, "all_gather_gemm");
}
std::unique_ptr<device_operator> gemm_all_scatter_on_device(
    world& w, const gemm_all_scatter_problem& /*problem*/, const operator_options& /*options*/,
    std::int64_t /*between*/, gpu::room_pool* /*rooms*/) {
  refuse(w, "gemm_all_scatter");
}
process_owned<device_norm> all_reduce_norm_on_device(world& w,
                                                     const all_reduce_norm_problem& /*problem*/,
                                                     int /*phases*/,
                                                     const shown_results& /*results*/) {
  refuse(w, "all_reduce_norm");
}
process_owned<device_norm> all_reduce_norm_for_any_tokens(
    world& w, const all_reduce_norm_problem& /*problem*/, const row_plans& /*plans*/,
    const shown_results& /*results*/) {
  refuse(w, "all_reduce_norm");
}
process_owned<merge_backend> merge_on_device(world& w,
                                             const merge_partial_attention_problem& /*problem*/,
                                             const merge_partial_attention_plan& /*plan*/,
                                             bool /*varying_tokens*/) {
  refuse(w, "merge_partial_attention");
}
std::unique_ptr<device_operator> sums_on_device(world& w, const device_sum& sum,
                                                const operator_options& /*options*/,
                                                const symmetric_result& /*result*/,
                                                gpu::room_pool* /*rooms*/) {
  refuse(w, sum.operator_name);
}
std::unique_ptr<device_operator> lonely_sum_on_device(world& w, const device_sum& sum,
                                                      pattern /*how*/) {
  refuse(w, sum.operator_name);
}

}  // namespace untax
