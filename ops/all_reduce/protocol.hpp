#pragma once

#include "ops/collectives_common/direct_reduce.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/collectives_common/pushed_reduce.hpp"
#include "ops/collectives_common/reduce_protocol.hpp"

namespace untax {

/// Calls `use` with the protocol for the problem.
template <class Use>
auto with_protocol_for(const all_reduce_problem& problem, const collective_plan& plan, Use&& use) {
  if (plan.pushes) return use(pushed_reduce(problem.count, problem.how, plan));
  if (plan.direct)
    return use(direct_reduce(problem.count, problem.how, reduce_target::everywhere, plan));
  return use(reduce_protocol(problem.count, problem.how, reduce_target::everywhere, plan));
}

[[nodiscard]] inline collective_need need_of(const all_reduce_problem& problem, int world) {
  const std::int64_t shard = sharding{problem.count, world}.full();
  return {"all_reduce", problem.type, shard, problem.count, problem.count, true, 2, touched::both};
}

}  // namespace untax
