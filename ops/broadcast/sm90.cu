#include "engines/sm90/transfer/kernel.cuh"
#include "ops/broadcast/protocol.hpp"
#include "ops/collectives_common/device_code.hpp"

namespace untax {

sm90::transfer_code relay_code(std::int64_t count, dtype type, int root,
                               const collective_plan& plan) {
  const relay_protocol protocol(count, root, plan);
  const int bytes = static_cast<int>(size_of(type));
  return plan.wire == wire_kind::bulk ? sm90::code_of<void, sm90::bulk_mover>(protocol, bytes)
                                      : sm90::code_of<void, sm90::store_mover>(protocol, bytes);
}

}  // namespace untax
