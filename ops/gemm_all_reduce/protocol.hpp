#pragma once

#include <untax/core/memory_kind.hpp>
#include <untax/ops/gemm_all_reduce.hpp>

#include "ops/gemm_reduce_common/protocol.hpp"

namespace untax {

[[nodiscard]] constexpr gemm_reduce_protocol protocol_for(const gemm_all_reduce_problem& problem,
                                                          const protocol_plan& plan) {
  return {{problem.m, problem.n, problem.k, reduce_target::everywhere}, plan};
}

/// The number of phases that untax chooses. The second phase saves bytes and takes one more hop.
/// With fewer rows than ranks some ranks would add nothing. Between two GPUs it saves no bytes,
/// only half of the additions, and its result is copied to the caller's C: measured on two H200,
/// one phase takes less time up to some 16 MB.
[[nodiscard]] constexpr int phases_for(const gemm_all_reduce_problem& problem, int world,
                                       memory_kind memory) {
  constexpr std::int64_t two_phase_bytes = 64 << 10;
  constexpr std::int64_t two_phase_bytes_saved = 2 << 20;
  constexpr std::int64_t many_bytes = 16 << 20;
  if (world == 1 || problem.m < world) return 1;
  const std::int64_t bytes =
      problem.m * problem.n * static_cast<std::int64_t>(size_of(partials_type(problem)));
  if (memory != memory_kind::cuda) return bytes >= two_phase_bytes ? 2 : 1;
  return bytes >= many_bytes || bytes * (world - 2) >= two_phase_bytes_saved ? 2 : 1;
}

}  // namespace untax
