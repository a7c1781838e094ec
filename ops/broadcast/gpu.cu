#include "engines/gpu/collectives/kernel.cuh"
#include "engines/gpu/packets/layout.hpp"
#include "ops/broadcast/protocol.hpp"
#include "ops/collectives_common/device_code.hpp"
#include "ops/collectives_common/tables.hpp"

namespace untax {
namespace {

template <class Protocol>
gpu::collective_kernel moving_code(const Protocol& protocol, dtype type, wire_kind wire) {
  const int bytes = static_cast<int>(size_of(type));
  return wire == wire_kind::bulk ? gpu::code_of<void, gpu::bulk_sender>(protocol, bytes)
                                 : gpu::code_of<void, gpu::store_sender>(protocol, bytes);
}

}  // namespace

gpu::collective_kernel relay_code(std::int64_t count, dtype type, int root,
                                  const collective_plan& plan) {
  if (plan.wire == wire_kind::packets) {
    const ownership owners{inner_shares(count, plan.world - 1), root + 1, plan.world};
    return gpu::packet_relay(planned(relayed_messages(owners, root, plan), plan), type, root, count,
                             plan.workers);
  }
  if (plan.direct) return moving_code(direct_relay(count, root, plan), type, plan.wire);
  return moving_code(relay_protocol(count, root, plan), type, plan.wire);
}

}  // namespace untax
