#pragma once

#include <untax/ops/gemm_reduce_scatter.hpp>

#include "ops/gemm_reduce_common/protocol.hpp"

namespace untax {

[[nodiscard]] constexpr gemm_reduce_protocol protocol_for(
    const gemm_reduce_scatter_problem& problem, const protocol_plan& plan) {
  return {{problem.m, problem.n, problem.k, reduce_target::owner}, plan};
}

}  // namespace untax
