#include <fmt/format.h>

#include <untax/tile/shard.hpp>
#include "ops/_skeleton/skeleton.hpp"

#include "engines/host/engine.hpp"
#include "ops/_skeleton/protocol.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/planning.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "skeleton";

}  // namespace

// Planning: refuse impossible requests, choose the options that are left open, check that all ranks
// plan the same, then build the engine, which allocates and clears the operator's memory.
skeleton::skeleton(world& w, const skeleton_problem& problem, const operator_options& options)
    : problem_(problem), rank_(w.rank()) {
  require_sizes(name, rank_, problem.m, problem.n, problem.k);
  const std::int64_t rows = a_shard(problem, w.size(), 0).rows;
  auto plan = make_plan(w, name, {rows, problem.n, problem.k, problem.type}, options);
  plan_ = plan.plan;
  explanation_ = std::move(plan.explanation);
  agree_on_plan(
      w, name,
      fmt::format("m {}, n {}, k {}, {}", problem.m, problem.n, problem.k, name_of(problem.type)),
      plan_);
  engine_ = make_process_owned<host::engine>(
      w, program(skeleton_protocol(problem_, plan_)),
      host::engine_options{std::string(name), problem.type, problem.type, options.launch,
                           options.faults});
}

skeleton::skeleton(skeleton&&) noexcept = default;
skeleton& skeleton::operator=(skeleton&&) noexcept = default;
skeleton::~skeleton() = default;

extent skeleton::a_shard(const skeleton_problem& problem, int world, int rank) {
  return {sharding{problem.m, world}.of(rank).size, problem.k};
}

// Running: check the arguments, bind them to the operands of the protocol, run the engine.
void skeleton::run(const const_matrix& a, const const_matrix& weights, const matrix& c) {
  const argument_check check{name, rank_};
  check.is_whole(engine_ != nullptr);
  check.matrix_of("a", a, a_shard(problem_, plan_.world, rank_), problem_.type);
  check.matrix_of("weights", weights, {problem_.n, problem_.k}, problem_.type);
  check.matrix_of("c", as_const(c), {problem_.m, problem_.n}, problem_.type);
  check.apart("a", a, as_const(c));
  check.apart("weights", weights, as_const(c));

  host::operand_table operands;
  operands[operand::a] = local_operand(a, rank_);
  operands[operand::b] = local_operand(weights, rank_);
  operands[operand::c] = local_operand(as_const(c), rank_);
  engine_->run(operands);
}

}  // namespace untax
