#include "ops/_skeleton/skeleton.hpp"

#include "ops/_skeleton/protocol.hpp"
#include "ops/_skeleton/spec.hpp"
#include "ops/common/runnable_operator.hpp"

namespace untax {
namespace {

skeleton_problem problem_of(const gemm_problem& p) { return {p.m, p.n, p.k, p.type}; }

/// The parts of the whole A, B and C that a rank holds. Results are checked against them.
gemm_share share(const gemm_problem& p, int world, int rank) {
  return {.a_rows = sharding{p.m, world}.of(rank),
          .a_cols = {0, p.k},
          .b_rows = {0, p.n},
          .b_cols = {0, p.k},
          .c_rows = {0, p.m},
          .c_cols = {0, p.n}};
}

double bytes_sent(const gemm_problem& p, int world, int rank) {
  const std::int64_t rows = skeleton::a_shard(problem_of(p), world, rank).rows;
  return static_cast<double>(rows) * static_cast<double>(p.n) * (world - 1) *
         static_cast<double>(size_of(p.type));
}

}  // namespace

operator_entry skeleton_entry() {
  return {.name = std::string(spec<skeleton>.name),
          .summary = std::string(spec<skeleton>.summary),
          .gathers = false,
          .reproducible = true,
          .make = [](world& w, const gemm_problem& p,
                     const operator_options& o) -> std::unique_ptr<runnable> {
            return std::make_unique<runnable_operator<skeleton>>(w, problem_of(p), o);
          },
          .share = share,
          .protocol =
              [](const gemm_problem& p, const protocol_plan& plan) {
                return program(skeleton_protocol(problem_of(p), plan));
              },
          .bytes_sent = bytes_sent};
}

}  // namespace untax
