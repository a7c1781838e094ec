#pragma once

#include <algorithm>
#include <cstdint>

#include <untax/ops/collective_problems.hpp>

#include "engines/gpu/packets/messages.hpp"
#include "ops/collectives_common/reduce_protocol.hpp"

namespace untax {

/// The table for a plan. If runs have any count, its largest message is that of the plan.
[[nodiscard]] inline gpu::message_table planned(gpu::message_table table,
                                                const collective_plan& plan) {
  if (plan.most == 0) return table;
  table.largest = plan.most;
  table.any_count = true;
  return table;
}

/// The messages of a rank in a reduction: the ranges that it sends to be combined, and the
/// destinations of combined ranges.
[[nodiscard]] inline gpu::message_table reduced_messages(std::int64_t count, reduce_target target,
                                                         const collective_plan& plan) {
  const sharding shards{count, plan.world};
  const bool straight = target == reduce_target::everywhere && plan.phases == 1;
  gpu::message_table table(plan.world, plan.rank);
  for (int peer = 0; peer < plan.world; ++peer) {
    table.sent[peer] = straight ? range{0, count} : shards.of(peer);
    table.largest = std::max(table.largest, table.sent[peer].size);
    if (target == reduce_target::everywhere && !straight) table.got[peer] = shards.of(peer);
  }
  const range& own = table.sent[plan.rank];
  table.got[plan.rank] = {target == reduce_target::everywhere ? own.begin : 0, own.size};
  return table;
}

/// The messages of a rank in a broadcast in two phases, as parts of owners.
[[nodiscard]] inline gpu::message_table relayed_messages(const ownership& owners, int root,
                                                         const collective_plan& plan) {
  gpu::message_table table(plan.world, plan.rank);
  for (int peer = 0; peer < plan.world; ++peer) {
    if (peer == root) continue;
    table.got[peer] = owners.of(peer);
    table.largest = std::max(table.largest, table.got[peer].size);
    table.sent[peer] = owners.of(plan.rank == root ? peer : plan.rank);
  }
  return table;
}

}  // namespace untax
