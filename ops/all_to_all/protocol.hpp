#pragma once

#include <algorithm>

#include "ops/collectives_common/exchange_protocol.hpp"
#include "ops/collectives_common/parts.hpp"
#include "ops/collectives_common/planning.hpp"

namespace untax {

using all_to_all_protocol = exchange_protocol<equal_parts>;
using unequal_all_to_all_protocol = exchange_protocol<unequal_parts>;

/// Calls `use` with the protocol for the problem, which has to outlive it.
template <class Use>
auto with_protocol_for(const all_to_all_problem& problem, const collective_plan& plan, Use&& use) {
  if (problem.counts.empty()) return use(all_to_all_protocol({problem.count}, plan));
  return use(unequal_all_to_all_protocol({problem.counts.data(), plan.world}, plan));
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
