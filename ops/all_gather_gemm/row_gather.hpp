#pragma once

#include <cstdint>
#include <utility>

#include <untax/core/types.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/shard.hpp>

#include "ops/all_gather/protocol.hpp"

namespace untax {

/// The all_gather in front of a product: its shards are whole rows of A, so ranks have unequal
/// numbers of elements where they have unequal numbers of rows.
struct row_gather_problem {
  std::int64_t count = 0;  ///< elements of all rows
  std::int64_t row = 1;    ///< elements of a row
  dtype type = dtype::bf16;
};

[[nodiscard]] inline row_gather_problem row_gather_of(const all_gather_gemm_problem& p) {
  return {p.m * p.k, p.k, p.type};
}

/// The elements of each rank.
[[nodiscard]] inline gathered_parts parts_of(const row_gather_problem& p, int world) {
  return {sharding{p.count / p.row, world}.times(p.row)};
}

[[nodiscard]] inline collective_need need_of(const row_gather_problem& p, int world) {
  const std::int64_t shard = parts_of(p, world).shards.full();
  return {"all_gather", p.type, shard, shard, p.count, false};
}

/// Calls `use` with the protocol for the problem.
template <class Use>
auto with_protocol_for(const row_gather_problem& p, const collective_plan& plan, Use&& use) {
  return with_gathered(parts_of(p, plan.world), plan, std::forward<Use>(use));
}

}  // namespace untax
