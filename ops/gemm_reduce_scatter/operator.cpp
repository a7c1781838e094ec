#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/gemm_reduce_scatter.hpp>
#include <untax/tile/shard.hpp>

#include "engines/host/engine.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/planning.hpp"
#include "ops/gemm_reduce_scatter/protocol.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_reduce_scatter";

}  // namespace

gemm_reduce_scatter::gemm_reduce_scatter(world& w, const gemm_reduce_scatter_problem& problem,
                                         const operator_options& options)
    : problem_(problem), rank_(w.rank()) {
  require_size(name, rank_, "m", problem.m);
  require_size(name, rank_, "n", problem.n);
  require_size(name, rank_, "k", problem.k);
  if (problem.partials != dtype::f32 && problem.partials != problem.type) {
    throw error(
        errc::invalid_argument,
        fmt::format("rank {}: {}: partials are {}; they have to be fp32 or, as the operands, {}",
                    rank_, name, name_of(problem.partials), name_of(problem.type)));
  }
  if (w.memory() == memory_kind::cuda) {
    throw error(errc::unsupported,
                fmt::format("rank {}: {}: is not there in worlds of GPUs, only where ranks are "
                            "threads or processes of the host",
                            rank_, name));
  }
  auto made = make_plan(
      w, name, {problem.m, problem.n, k_shard(problem, w.size(), 0), problem.type}, options);
  plan_ = made.plan;
  explanation_ = std::move(made.explanation);
  agree_on_plan(w, name,
                fmt::format("m {}, n {}, k {}, {}, partials {}", problem.m, problem.n, problem.k,
                            name_of(problem.type), name_of(problem.partials)),
                plan_);
  engine_ = make_process_owned<host::engine>(
      w, program(gemm_reduce_scatter_protocol(problem_, plan_)),
      host::engine_options{std::string(name), problem.partials, problem.partials, options.launch,
                           options.faults});
}

gemm_reduce_scatter::gemm_reduce_scatter(gemm_reduce_scatter&&) noexcept = default;
gemm_reduce_scatter& gemm_reduce_scatter::operator=(gemm_reduce_scatter&&) noexcept = default;
gemm_reduce_scatter::~gemm_reduce_scatter() = default;

std::int64_t gemm_reduce_scatter::k_shard(const gemm_reduce_scatter_problem& problem, int world,
                                          int rank) {
  return sharding{problem.k, world, shard_granularity}.of(rank).size;
}

extent gemm_reduce_scatter::c_shard(const gemm_reduce_scatter_problem& problem, int world,
                                    int rank) {
  return {sharding{problem.m, world}.of(rank).size, problem.n};
}

void gemm_reduce_scatter::run(const const_matrix& a, const const_matrix& weights, const matrix& c) {
  const argument_check check{name, rank_};
  check.is_whole(engine_ != nullptr);
  const std::int64_t depth = k_shard(problem_, plan_.world, rank_);
  check.matrix_of("a", a, {problem_.m, depth}, problem_.type);
  check.matrix_of("weights", weights, {problem_.n, depth}, problem_.type);
  check.matrix_of("c", as_const(c), c_shard(problem_, plan_.world, rank_), problem_.type);
  check.apart("a", a, as_const(c));
  check.apart("weights", weights, as_const(c));

  host::operand_table operands;
  operands[operand::a] = local_operand(a, rank_);
  operands[operand::b] = local_operand(weights, rank_);
  operands[operand::c] = local_operand(as_const(c), rank_);
  engine_->run(operands);
}

}  // namespace untax
