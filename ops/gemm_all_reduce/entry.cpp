#include <untax/ops/gemm_all_reduce.hpp>

#include "ops/common/runnable_operator.hpp"
#include "ops/gemm_all_reduce/protocol.hpp"
#include "ops/gemm_all_reduce/spec.hpp"

namespace untax {
namespace {

gemm_all_reduce_problem problem_of(const gemm_problem& p) {
  return {p.m, p.n, p.k, p.type, p.partials};
}

gemm_share share(const gemm_problem& p, int world, int rank) {
  const range depth = sharding{p.k, world, shard_granularity}.of(rank);
  return {.a_rows = {0, p.m},
          .a_cols = depth,
          .b_rows = {0, p.n},
          .b_cols = depth,
          .c_rows = {0, p.m},
          .c_cols = {0, p.n}};
}

int phases(const gemm_problem& p, int world, memory_kind memory) {
  return phases_for(problem_of(p), world, memory);
}

double bytes_sent(const gemm_problem& p, int world, int rank) {
  const auto partial = static_cast<double>(size_of(partials_type(p)));
  const auto cols = static_cast<double>(p.n);
  if (phases(p, world, memory_kind::host) == 1)
    return static_cast<double>(p.m) * (world - 1) * cols * partial;
  const auto own = static_cast<double>(sharding{p.m, world}.of(rank).size);
  return cols * ((static_cast<double>(p.m) - own) * partial +
                 own * (world - 1) * static_cast<double>(size_of(p.type)));
}

}  // namespace

operator_entry gemm_all_reduce_entry() {
  return {.name = std::string(spec<gemm_all_reduce>.name),
          .summary = std::string(spec<gemm_all_reduce>.summary),
          .gathers = false,
          .sums_to = reduce_target::everywhere,
          .on_gpus = true,
          .result_in_heap = true,
          .reproducible = true,
          .make = maker_of<gemm_all_reduce>(problem_of),
          .share = share,
          .protocol =
              [](const gemm_problem& p, const protocol_plan& plan) {
                return program(protocol_for(problem_of(p), plan));
              },
          .bytes_sent = bytes_sent,
          .phases = phases};
}

}  // namespace untax
