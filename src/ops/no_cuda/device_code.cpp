#include "ops/collectives_common/device_code.hpp"

#include <untax/core/error.hpp>

namespace untax {
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

}  // namespace untax
