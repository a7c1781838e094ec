#include "engines/gpu/collectives/kernel.cuh"
#include "engines/gpu/packets/layout.hpp"
#include "ops/collectives_common/device_code.hpp"
#include "ops/collectives_common/direct_reduce.hpp"
#include "ops/collectives_common/pushed_reduce.hpp"
#include "ops/collectives_common/tables.hpp"

namespace untax {
namespace {

template <class Sender, class Protocol>
gpu::collective_kernel moving_code(const Protocol& protocol, dtype type) {
  switch (type) {
    case dtype::f32:
      return gpu::code_of<float, Sender>(protocol, 4);
    case dtype::f16:
      return gpu::code_of<f16, Sender>(protocol, 2);
    case dtype::bf16:
      return gpu::code_of<bf16, Sender>(protocol, 2);
  }
  return {};
}

template <class Protocol>
gpu::collective_kernel moving_code(const Protocol& protocol, dtype type, wire_kind wire) {
  return wire == wire_kind::bulk ? moving_code<gpu::bulk_sender>(protocol, type)
                                 : moving_code<gpu::store_sender>(protocol, type);
}

}  // namespace

gpu::collective_kernel reduction_code(std::int64_t count, dtype type, reduction how,
                                      reduce_target target, const collective_plan& plan) {
  if (plan.wire == wire_kind::packets) {
    const bool passes_on = target == reduce_target::everywhere && plan.phases == 2;
    return gpu::packet_reduction(planned(reduced_messages(count, target, plan), plan), type, how,
                                 passes_on, plan.workers);
  }
  if (plan.pushes) return moving_code(pushed_reduce(count, how, plan), type, plan.wire);
  if (plan.direct) return moving_code(direct_reduce(count, how, target, plan), type, plan.wire);
  return moving_code(reduce_protocol(count, how, target, plan), type, plan.wire);
}

}  // namespace untax
