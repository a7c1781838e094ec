#include "engines/sm90/packets/layout.hpp"
#include "engines/sm90/transfer/kernel.cuh"
#include "ops/collectives_common/device_code.hpp"
#include "ops/collectives_common/direct_exchange.hpp"
#include "ops/collectives_common/exchange_protocol.hpp"

namespace untax {
namespace {

template <class Protocol>
sm90::transfer_code moving_code(const Protocol& protocol, dtype type, wire_kind wire) {
  const int bytes = static_cast<int>(size_of(type));
  return wire == wire_kind::bulk ? sm90::code_of<void, sm90::bulk_sender>(protocol, bytes)
                                 : sm90::code_of<void, sm90::store_sender>(protocol, bytes);
}

}  // namespace

// One kernel serves all: what goes where is a table, whatever the collective is called.
sm90::transfer_code exchange_code(const sm90::message_table& messages, dtype type,
                                  const collective_plan& plan) {
  if (plan.wire == wire_kind::packets) return sm90::packet_exchange(messages, type, plan.workers);
  const sm90::listed_parts parts{messages};
  if (plan.direct) {
    return moving_code(direct_exchange<sm90::listed_parts>(parts, plan), type, plan.wire);
  }
  return moving_code(exchange_protocol<sm90::listed_parts>(parts, plan), type, plan.wire);
}

}  // namespace untax
