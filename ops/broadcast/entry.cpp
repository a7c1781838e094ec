#include <untax/ops/collectives.hpp>

#include "ops/broadcast/protocol.hpp"
#include "ops/broadcast/spec.hpp"
#include "ops/collectives_common/entry.hpp"

namespace untax {

collective_entry broadcast_entry() {
  collective_entry entry =
      entry_of<broadcast>("broadcast", [](const collective_problem& p, int /*world*/) {
        return broadcast_problem{p.count, p.type, p.root};
      });
  entry.summary = spec<broadcast>.summary;
  entry.has_root = true;
  entry.has_phases = true;
  entry.origin_of = [](const collective_problem& p, int /*world*/, int /*rank*/, std::int64_t i) {
    return origin{p.root, i};
  };
  entry.bytes = [](const collective_problem& p, int world) {
    return world > 1 ? static_cast<double>(p.count) * static_cast<double>(size_of(p.type)) : 0;
  };
  entry.ring = [](double bytes, int world) { return ring_traffic{bytes, world - 1}; };
  return entry;
}

}  // namespace untax
