#include "ops/all_reduce_norm/device.hpp"
#include "ops/common/without_cuda.hpp"

namespace untax {

process_owned<device_norm> all_reduce_norm_on_device(world& w,
                                                     const all_reduce_norm_problem& /*problem*/,
                                                     int /*phases*/,
                                                     const shown_results& /*results*/) {
  refuse_without_cuda(w, "all_reduce_norm");
}
process_owned<device_norm> all_reduce_norm_for_any_tokens(
    world& w, const all_reduce_norm_problem& /*problem*/, const row_plans& /*plans*/,
    const shown_results& /*results*/) {
  refuse_without_cuda(w, "all_reduce_norm");
}

}  // namespace untax
