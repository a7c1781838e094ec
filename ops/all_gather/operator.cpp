#include <fmt/format.h>

#include <untax/ops/collectives.hpp>

#include "ops/all_gather/protocol.hpp"

namespace untax {

all_gather::all_gather(world& w, const all_gather_problem& problem,
                       const collective_options& options)
    : collective(w, need_of(problem, w.size()), options), problem_(problem) {
  start(w, fmt::format("count {}", problem.count), program(protocol_for(problem_, plan())),
        options);
}

std::int64_t all_gather::shard(const all_gather_problem& problem, int world, int rank) {
  return sharding{problem.count, world}.of(rank).size;
}

void all_gather::run(const const_elements& in, const elements& out) {
  const range own = sharding{problem_.count, plan().world}.of(plan().rank);
  check("in", in, own.size);
  check("out", as_const(out), problem_.count);
  check_apart(in, out, {true, own.begin});
  carry_out(in, out);
}

}  // namespace untax
