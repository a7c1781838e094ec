#include "engines/gpu/collectives/kernel.cuh"
#include "engines/gpu/packets/layout.hpp"
#include "ops/collectives_common/device_code.hpp"
#include "ops/collectives_common/direct_exchange.hpp"
#include "ops/collectives_common/exchange_protocol.hpp"
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

// One kernel serves all of these collectives: a table has the range for each rank.
gpu::collective_kernel exchange_code(const gpu::message_table& messages, dtype type,
                                     const collective_plan& plan) {
  if (plan.wire == wire_kind::packets)
    return gpu::packet_exchange(planned(messages, plan), type, plan.workers);
  const gpu::listed_parts parts{messages};
  if (plan.direct) {
    return moving_code(direct_exchange<gpu::listed_parts>(parts, plan), type, plan.wire);
  }
  return moving_code(exchange_protocol<gpu::listed_parts>(parts, plan), type, plan.wire);
}

}  // namespace untax
