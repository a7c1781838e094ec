#include <untax/ops/gemm_reduce_scatter.hpp>

#include "ops/common/runnable_operator.hpp"
#include "ops/gemm_reduce_scatter/protocol.hpp"
#include "ops/gemm_reduce_scatter/spec.hpp"

namespace untax {
namespace {

gemm_reduce_scatter_problem problem_of(const gemm_problem& p) {
  return {p.m, p.n, p.k, p.type, p.partials};
}

gemm_share share(const gemm_problem& p, int world, int rank) {
  const range depth = sharding{p.k, world, shard_granularity}.of(rank);
  return {.a_rows = {0, p.m},
          .a_cols = depth,
          .b_rows = {0, p.n},
          .b_cols = depth,
          .c_rows = sharding{p.m, world}.of(rank),
          .c_cols = {0, p.n}};
}

double bytes_sent(const gemm_problem& p, int world, int rank) {
  const std::int64_t rows = p.m - sharding{p.m, world}.of(rank).size;
  return static_cast<double>(rows * p.n) * static_cast<double>(size_of(partials_type(p)));
}

}  // namespace

operator_entry gemm_reduce_scatter_entry() {
  return {.name = std::string(spec<gemm_reduce_scatter>.name),
          .summary = std::string(spec<gemm_reduce_scatter>.summary),
          .gathers = false,
          .sums_to = reduce_target::owner,
          .on_gpus = true,
          .reproducible = true,
          .make = maker_of<gemm_reduce_scatter>(problem_of),
          .share = share,
          .protocol =
              [](const gemm_problem& p, const protocol_plan& plan) {
                return program(protocol_for(problem_of(p), plan));
              },
          .bytes_sent = bytes_sent};
}

}  // namespace untax
