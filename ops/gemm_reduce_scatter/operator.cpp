#include <untax/ops/gemm_reduce_scatter.hpp>

#include <untax/tile/shard.hpp>

#include "ops/common/arguments.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_reduce_common/planning.hpp"
#include "ops/gemm_reduce_scatter/protocol.hpp"
#include "ops/gemm_reduce_scatter/spec.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_reduce_scatter";

summed_problem summed(const gemm_reduce_scatter_problem& p) {
  return {name, p.m, p.n, p.k, p.type, partials_type(p)};
}

}  // namespace

gemm_reduce_scatter::gemm_reduce_scatter(world& w, const gemm_reduce_scatter_problem& problem,
                                         const operator_options& options)
    : problem_(problem), rank_(w.rank()), planned_(std::make_unique<planned_gemm>(w, name)) {
  if (w.memory() == memory_kind::cuda) {
    auto device =
        make_summed_on_device(w, gemm_reduce_scatter_entry(), summed(problem), {}, options);
    plan_ = device.plan;
    planned_->plans = std::move(device.plans);
    explanation_ = std::move(device.made.explanation);
    planned_->backend = std::move(device.made.runner);
    return;
  }
  const planned_on_host host = plan_summed_on_host(w, summed(problem), options);
  plan_ = host.plan;
  explanation_ = host.explanation;
  planned_->plans = host.plans;
  planned_->backend = backend_on_host(
      *planned_, host, host_options(name, problem.type, partials_type(problem), options), problem.m,
      problem.n, [problem](std::int64_t rows, const protocol_plan& plan) {
        return protocol_for(with_rows(problem, rows), plan);
      });
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
  argument_check{name, rank_}.is_whole(planned_ != nullptr);
  const std::int64_t rows =
      rows_of_run(name, rank_, "a", a.rows, problem_.m, planned_->plans.get());
  const auto problem = with_rows(problem_, rows);
  check_summed(summed(problem), plan_, a, weights, c, c_shard(problem, plan_.world, rank_));
  (*planned_->turns)(stream, [&] { planned_->backend->run(rows, a, weights, c, stream); });
}

}  // namespace untax
