#include <untax/ops/gemm_reduce_scatter.hpp>

#include <untax/tile/shard.hpp>

#include "engines/host/engine.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_reduce_common/planning.hpp"
#include "ops/gemm_reduce_scatter/protocol.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_reduce_scatter";

summed_problem summed(const gemm_reduce_scatter_problem& p) {
  return {name, p.m, p.n, p.k, p.type, p.partials};
}

}  // namespace

gemm_reduce_scatter::gemm_reduce_scatter(world& w, const gemm_reduce_scatter_problem& problem,
                                         const operator_options& options)
    : problem_(problem), rank_(w.rank()) {
  if (w.memory() == memory_kind::cuda) {
    auto all = make_summed_on_device(w, gemm_reduce_scatter_entry(), summed(problem), {}, options);
    plan_ = all.plan;
    plans_ = std::move(all.plans);
    explanation_ = std::move(all.made.explanation);
    device_ = std::move(all.made.runner);
    return;
  }
  auto made = plan_summed(w, summed(problem), options);
  plan_ = made.plan;
  explanation_ = std::move(made.explanation);
  const auto how = host_options(name, problem.type, problem.partials, options);
  if (!options.varying_rows) {
    agree_on_summed(w, summed(problem), options, plan_);
    engine_ = make_process_owned<host::engine>(w, program(protocol_for(problem_, plan_)), how);
    return;
  }
  plans_ = std::make_shared<const row_plans>(problem.m, [&](std::int64_t rows) {
    return plan_summed(w, summed(with_rows(problem, rows)), options).plan;
  });
  explanation_ += told_of(*plans_);
  agree_on_summed(w, summed(problem), options, *plans_);
  const auto protocol = [problem](std::int64_t rows, const protocol_plan& plan) {
    return protocol_for(with_rows(problem, rows), plan);
  };
  engine_ = make_process_owned<host::engine>(
      w, programs_of(plans_, most_ring_uses(*plans_, problem.n), protocol), how);
}

gemm_reduce_scatter::gemm_reduce_scatter(gemm_reduce_scatter&&) noexcept = default;
gemm_reduce_scatter& gemm_reduce_scatter::operator=(gemm_reduce_scatter&&) noexcept = default;
gemm_reduce_scatter::~gemm_reduce_scatter() = default;

std::int64_t gemm_reduce_scatter::k_shard(const gemm_reduce_scatter_problem& problem, int world,
                                          int rank) {
  return k_shard_of(problem.k, world, rank);
}

extent gemm_reduce_scatter::c_shard(const gemm_reduce_scatter_problem& problem, int world,
                                    int rank) {
  return {sharding{problem.m, world}.of(rank).size, problem.n};
}

void gemm_reduce_scatter::run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                              stream_ref stream) {
  argument_check{name, rank_}.is_whole(engine_ || device_);
  const std::int64_t rows = rows_of_run(name, rank_, "a", a.rows, problem_.m, plans_.get());
  const auto problem = with_rows(problem_, rows);
  check_summed(summed(problem), plan_, a, weights, c, c_shard(problem, plan_.world, rank_));
  if (device_) return run_on_device(*device_, plans_.get(), rows, a, weights, c, stream);
  host::operand_table operands;
  operands[operand::a] = local_operand(a, rank_);
  operands[operand::b] = local_operand(weights, rank_);
  operands[operand::c] = local_operand(as_const(c), rank_);
  if (plans_) return engine_->run(operands, rows);
  engine_->run(operands);
}

}  // namespace untax
