#pragma once

#include "ops/gemm_reduce_common/protocol.hpp"

namespace untax {

[[nodiscard]] constexpr gemm_reduce_protocol protocol_for(const gemm_all_reduce_problem& problem,
                                                          const protocol_plan& plan) {
  return {{problem.m, problem.n, problem.k, reduce_target::everywhere}, plan};
}

/// How many phases untax chooses. The second one saves bytes and takes one more way; and with fewer
/// rows than ranks, some ranks would add nothing.
[[nodiscard]] constexpr int phases_for(const gemm_all_reduce_problem& problem, int world) {
  constexpr std::int64_t two_phase_bytes = 64 << 10;
  const std::int64_t bytes =
      problem.m * problem.n * static_cast<std::int64_t>(size_of(problem.partials));
  return world > 1 && bytes >= two_phase_bytes && problem.m >= world ? 2 : 1;
}

}  // namespace untax
