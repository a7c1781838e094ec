#pragma once

#include <algorithm>

#include "ops/collectives_common/direct_exchange.hpp"
#include "ops/collectives_common/exchange_protocol.hpp"
#include "ops/collectives_common/parts.hpp"
#include "ops/collectives_common/planning.hpp"

namespace untax {

using all_to_all_protocol = exchange_protocol<equal_parts>;
using unequal_all_to_all_protocol = exchange_protocol<unequal_parts>;

/// Calls `use` with the protocol for the problem, which has to outlive it.
template <class Use>
auto with_protocol_for(const all_to_all_problem& problem, const collective_plan& plan, Use&& use) {
  const equal_parts equal{problem.count};
  const unequal_parts unequal{problem.counts.data(), plan.world};
  if (problem.counts.empty()) {
    if (plan.direct) return use(direct_exchange<equal_parts>(equal, plan));
    return use(all_to_all_protocol(equal, plan));
  }
  if (plan.direct) return use(direct_exchange<unequal_parts>(unequal, plan));
  return use(unequal_all_to_all_protocol(unequal, plan));
}

[[nodiscard]] inline collective_need need_of(const all_to_all_problem& problem, int world) {
  const std::int64_t largest =
      problem.counts.empty() ? problem.count
                             : *std::max_element(problem.counts.begin(), problem.counts.end());
  return {"all_to_all", problem.type, largest, largest, largest * world, false};
}

static_assert(protocol<all_to_all_protocol>);
static_assert(protocol<unequal_all_to_all_protocol>);

}  // namespace untax
