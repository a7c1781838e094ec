#include <untax/ops/collectives.hpp>

#include "ops/collectives_common/entry.hpp"
#include "ops/reduce_scatter/protocol.hpp"
#include "ops/reduce_scatter/spec.hpp"

namespace untax {

collective_entry reduce_scatter_entry() {
  collective_entry entry =
      entry_of<reduce_scatter>("reduce_scatter", [](const collective_problem& p, int /*world*/) {
        return reduce_scatter_problem{p.count, p.type, p.how};
      });
  entry.summary = spec<reduce_scatter>.summary;
  entry.combines = true;
  entry.origin_of = [](const collective_problem& p, int world, int rank, std::int64_t i) {
    return origin{-1, sharding{p.count, world}.of(rank).begin + i};
  };
  entry.bytes = [](const collective_problem& p, int world) {
    return static_cast<double>(p.count * (world - 1)) / world *
           static_cast<double>(size_of(p.type));
  };
  return entry;
}

}  // namespace untax
