#include <untax/ops/collectives.hpp>

#include "ops/all_reduce/protocol.hpp"
#include "ops/all_reduce/spec.hpp"
#include "ops/collectives_common/entry.hpp"

namespace untax {

collective_entry all_reduce_entry() {
  collective_entry entry =
      entry_of<all_reduce>("all_reduce", [](const collective_problem& p, int /*world*/) {
        return all_reduce_problem{p.count, p.type, p.how};
      });
  entry.summary = spec<all_reduce>.summary;
  entry.combines = true;
  entry.has_phases = true;
  entry.origin_of = [](const collective_problem& /*p*/, int /*world*/, int /*rank*/,
                       std::int64_t i) {
    return origin{-1, i};
  };
  entry.bytes = [](const collective_problem& p, int world) {
    return static_cast<double>(2 * p.count * (world - 1)) / world *
           static_cast<double>(size_of(p.type));
  };
  entry.ring = [](double bytes, int world) {
    return ring_traffic{2 * bytes * (world - 1.0) / world, 2 * (world - 1)};
  };
  return entry;
}

}  // namespace untax
