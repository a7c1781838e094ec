#include <untax/ops/collectives.hpp>

#include "ops/all_gather/protocol.hpp"
#include "ops/all_gather/spec.hpp"
#include "ops/collectives_common/entry.hpp"

namespace untax {

collective_entry all_gather_entry() {
  collective_entry entry =
      entry_of<all_gather>("all_gather", [](const collective_problem& p, int /*world*/) {
        return all_gather_problem{p.count, p.type};
      });
  entry.summary = spec<all_gather>.summary;
  entry.origin_of = [](const collective_problem& p, int world, int /*rank*/, std::int64_t i) {
    const std::int64_t full = sharding{p.count, world}.full();
    return origin{static_cast<int>(i / full), i % full};
  };
  entry.bytes = [](const collective_problem& p, int world) {
    return static_cast<double>(p.count * (world - 1)) / world *
           static_cast<double>(size_of(p.type));
  };
  return entry;
}

}  // namespace untax
