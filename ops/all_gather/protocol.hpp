#pragma once

#include <utility>

#include "ops/collectives_common/direct_exchange.hpp"
#include "ops/collectives_common/exchange_protocol.hpp"
#include "ops/collectives_common/parts.hpp"
#include "ops/collectives_common/planning.hpp"

namespace untax {

using all_gather_protocol = exchange_protocol<gathered_parts>;

/// Calls `use` with the protocol for shards of any sharding.
template <class Use>
auto with_gathered(const gathered_parts& parts, const collective_plan& plan, Use&& use) {
  if (plan.direct) return use(direct_exchange<gathered_parts>(parts, plan));
  return use(all_gather_protocol(parts, plan));
}

/// Calls `use` with the protocol for the problem.
template <class Use>
auto with_protocol_for(const all_gather_problem& problem, const collective_plan& plan, Use&& use) {
  return with_gathered(gathered_parts{{problem.count, plan.world}}, plan, std::forward<Use>(use));
}

[[nodiscard]] inline collective_need need_of(const all_gather_problem& problem, int world) {
  const std::int64_t shard = sharding{problem.count, world}.full();
  return {"all_gather", problem.type, shard, shard, problem.count, false};
}

static_assert(protocol<all_gather_protocol>);

}  // namespace untax
