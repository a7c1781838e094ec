#include <untax/ops/all_gather_gemm.hpp>

#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "ops/common/runnable_operator.hpp"

namespace untax {
namespace {

all_gather_gemm_problem problem_of(const gemm_problem& p) {
  return {p.m, p.n, p.k, p.type, p.gather};
}

gemm_share share(const gemm_problem& p, int world, int rank) {
  const range shard = a_sharding(problem_of(p), world).of(rank);
  const bool by_rows = p.gather == gather_axis::rows;
  return {.a_rows = by_rows ? shard : range{0, p.m},
          .a_cols = by_rows ? range{0, p.k} : shard,
          .b_rows = {0, p.n},
          .b_cols = {0, p.k},
          .c_rows = {0, p.m},
          .c_cols = {0, p.n},
          .b_of_rank = static_cast<std::uint64_t>(rank) + 1};
}

double bytes_sent(const gemm_problem& p, int world, int rank) {
  const extent shard = a_shard_of(problem_of(p), world, rank);
  return static_cast<double>(shard.rows) * static_cast<double>(shard.cols) * (world - 1) *
         static_cast<double>(size_of(p.type));
}

}  // namespace

operator_entry all_gather_gemm_entry() {
  return {.name = std::string(spec<all_gather_gemm>.name),
          .summary = std::string(spec<all_gather_gemm>.summary),
          .gathers = true,
          .on_gpus = true,
          .reproducible = true,
          .make = maker_of<all_gather_gemm>(problem_of),
          .share = share,
          .protocol =
              [](const gemm_problem& p, const protocol_plan& plan) {
                return program(all_gather_gemm_protocol(problem_of(p), plan));
              },
          .bytes_sent = bytes_sent};
}

}  // namespace untax
