#include <string>
#include <string_view>

#include <untax/core/error.hpp>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/choice/measured_on.hpp"
#include "ops/collectives_common/device_code.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/common/own_stream.hpp"
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

namespace {

[[noreturn]] void refuse() {
  throw error(errc::unsupported,
              "this untax was built without CUDA, so there are no collectives on GPUs; build it "
              "with -DUNTAX_CUDA=ON (or --preset cuda) where nvcc is");
}

}  // namespace

gpu::collective_kernel exchange_code(const gpu::message_table& /*messages*/, dtype /*type*/,
                                     const collective_plan& /*plan*/) {
  refuse();
}
gpu::collective_kernel reduction_code(std::int64_t /*count*/, dtype /*type*/, reduction /*how*/,
                                      reduce_target /*target*/, const collective_plan& /*plan*/) {
  refuse();
}
gpu::collective_kernel relay_code(std::int64_t /*count*/, dtype /*type*/, int /*root*/,
                                  const collective_plan& /*plan*/) {
  refuse();
}

std::string device_name_here() { return "none"; }

// Without CUDA no world of GPUs can be made, so none of these functions is ever called.

own_stream::own_stream() {
  throw error(errc::unsupported,
              "streams are for GPUs, and this untax was built without CUDA; build it with "
              "-DUNTAX_CUDA=ON (or --preset cuda) where nvcc is");
}

stream_ref own_stream::unless(stream_ref given) const {
  return given.handle != nullptr ? given : stream_;
}
void wait_for(stream_ref /*stream*/, std::string_view /*what*/) {}

bool is_captured(stream_ref /*stream*/) { return false; }
bool reachable_by_device(const void* /*p*/) { return false; }
std::uint64_t allocation_at(const void* /*p*/) { return 0; }
void wait_for_device(const world& /*w*/) noexcept {}

}  // namespace untax
