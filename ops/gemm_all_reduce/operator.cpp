#include <fmt/format.h>

#include <untax/ops/gemm_all_reduce.hpp>

#include "engines/host/convert.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_all_reduce/protocol.hpp"
#include "ops/gemm_all_reduce/spec.hpp"
#include "ops/gemm_reduce_common/planning.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_all_reduce";

summed_problem summed(const gemm_all_reduce_problem& p) {
  return {name, p.m, p.n, p.k, p.type, partials_type(p)};
}

/// Chooses the fields of a plan that `make_plan` leaves open. Throws `invalid_argument`.
std::string choose_phases(const world& w, const gemm_all_reduce_problem& problem,
                          const operator_options& options, protocol_plan& plan) {
  require_phases(name, plan.rank, options.phases);
  set_phases(plan,
             options.phases > 0 ? options.phases : phases_for(problem, plan.world, w.memory()));
  return fmt::format(", {} {}", plan.phases,
                     plan.phases == 1 ? "phase: everybody adds everything"
                                      : "phases: owners add rows and pass the sum on");
}

}  // namespace

gemm_all_reduce::gemm_all_reduce(world& w, const gemm_all_reduce_problem& problem,
                                 const operator_options& options)
    : problem_(problem), planned_(std::make_unique<planned_gemm>(w, name)) {
  const auto make_result = [&] {
    planned_->result = allocate_result(w, name, {problem.m, problem.n}, problem.type);
  };
  if (w.memory() == memory_kind::cuda) {
    require_phases(name, w.rank(), options.phases);
    make_result();
    const symmetric<std::byte>& own = planned_->result.get();
    const auto phases = [&](std::int64_t rows) {
      return options.phases > 0 ? options.phases
                                : phases_for(with_rows(problem, rows), w.size(), w.memory());
    };
    auto device = make_summed_on_device(w, gemm_all_reduce_entry(), summed(problem),
                                        {.target = reduce_target::everywhere,
                                         .result = {own.local(), own.span()},
                                         .phases = phases},
                                        options);
    plan_ = device.plan;
    planned_->plans = std::move(device.plans);
    explanation_ = std::move(device.made.explanation) + choose_phases(w, problem, options, plan_);
    planned_->backend = std::move(device.made.runner);
    return;
  }
  const planned_on_host host =
      plan_summed_on_host(w, summed(problem), options, [&](std::int64_t rows, protocol_plan& plan) {
        return choose_phases(w, with_rows(problem, rows), options, plan);
      });
  plan_ = host.plan;
  explanation_ = host.explanation;
  planned_->plans = host.plans;
  make_result();
  planned_->backend = backend_on_host(
      *planned_, host, host_options(name, problem.type, partials_type(problem), options), problem.m,
      problem.n, [problem](std::int64_t rows, const protocol_plan& plan) {
        return protocol_for(with_rows(problem, rows), plan);
      });
}

gemm_all_reduce::gemm_all_reduce(gemm_all_reduce&&) noexcept = default;
gemm_all_reduce& gemm_all_reduce::operator=(gemm_all_reduce&&) noexcept = default;
gemm_all_reduce::~gemm_all_reduce() = default;

std::int64_t gemm_all_reduce::k_shard(const gemm_all_reduce_problem& problem, int world, int rank) {
  return k_shard_of(problem.k, world, rank);
}

matrix gemm_all_reduce::result() const {
  argument_check{name, plan_.rank}.is_whole(planned_ != nullptr);
  return {planned_->result->local(), problem_.type, problem_.m, problem_.n};
}

matrix gemm_all_reduce::rows_of(matrix c, std::int64_t rows) const {
  if (planned_->plans) c.rows = rows;
  return c;
}

void gemm_all_reduce::run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                          stream_ref stream) {
  const matrix whole = result();
  const row_plans* const plans = planned_->plans.get();
  const std::int64_t rows = rows_of_run(name, plan_.rank, "a", a.rows, problem_.m, plans);
  const matrix own = rows_of(whole, rows);
  check_summed(summed(with_rows(problem_, rows)), plan_, a, weights, c, {rows, problem_.n});
  const bool into_own = c.data == own.data && c.stride == own.stride;
  const protocol_plan& plan = plans != nullptr && rows > 0 ? plans->at(rows) : plan_;
  const bool by_way_of_own = plan.phases == 2 && !into_own;
  if (by_way_of_own) {
    const argument_check check{name, plan_.rank};
    check.apart("a", a, as_const(own));
    check.apart("weights", weights, as_const(own));
    check.apart("c, which is not result(),", as_const(c), as_const(own));
  }
  const bool is_copied = by_way_of_own && !planned_->on_gpus();
  (*planned_->turns)(stream, [&] {
    planned_->backend->run(rows, a, weights, is_copied ? own : c, stream);
    if (!is_copied) return;
    host::copy_tile({static_cast<std::byte*>(own.data), own.stride, own.type}, own.rows, own.cols,
                    {static_cast<std::byte*>(c.data), c.stride, c.type});
  });
}

}  // namespace untax
