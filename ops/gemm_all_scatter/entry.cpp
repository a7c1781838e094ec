#include <untax/ops/gemm_all_scatter.hpp>

#include "ops/common/runnable_operator.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"
#include "ops/gemm_all_scatter/spec.hpp"

namespace untax {
namespace {

gemm_all_scatter_problem problem_of(const gemm_problem& p) { return {p.m, p.n, p.k, p.type}; }

gemm_share share(const gemm_problem& p, int world, int rank) {
  return {.a_rows = {0, p.m},
          .a_cols = {0, p.k},
          .b_rows = sharding{p.n, world, shard_granularity}.of(rank),
          .b_cols = {0, p.k},
          .c_rows = {0, p.m},
          .c_cols = {0, p.n}};
}

double bytes_sent(const gemm_problem& p, int world, int rank) {
  const std::int64_t cols = sharding{p.n, world, shard_granularity}.of(rank).size;
  return static_cast<double>(p.m) * static_cast<double>(cols) * (world - 1) *
         static_cast<double>(size_of(p.type));
}

}  // namespace

operator_entry gemm_all_scatter_entry() {
  return {.name = std::string(spec<gemm_all_scatter>.name),
          .summary = std::string(spec<gemm_all_scatter>.summary),
          .gathers = false,
          .columns_sharded = true,
          .on_gpus = true,
          .result_in_heap = true,
          .copied = true,
          .reproducible = true,
          .make = maker_of<gemm_all_scatter>(problem_of),
          .share = share,
          .protocol =
              [](const gemm_problem& p, const protocol_plan& plan) {
                return program(gemm_all_scatter_protocol(problem_of(p), plan));
              },
          .bytes_sent = bytes_sent};
}

}  // namespace untax
