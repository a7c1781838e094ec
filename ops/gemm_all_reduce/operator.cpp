#include <fmt/format.h>

#include <untax/ops/gemm_all_reduce.hpp>

#include "engines/host/convert.hpp"
#include "engines/host/engine.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_all_reduce/protocol.hpp"
#include "ops/gemm_reduce_common/planning.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_all_reduce";

summed_problem summed(const gemm_all_reduce_problem& p) {
  return {name, p.m, p.n, p.k, p.type, p.partials};
}

/// What of a plan `make_plan` does not choose. Throws `invalid_argument`.
std::string choose_phases(const world& w, const gemm_all_reduce_problem& problem,
                          const operator_options& options, protocol_plan& plan) {
  require_phases(name, plan.rank, options.phases);
  plan.phases = options.phases > 0 ? options.phases : phases_for(problem, plan.world, w.memory());
  return fmt::format(", {} {}", plan.phases,
                     plan.phases == 1 ? "phase: everybody adds everything"
                                      : "phases: owners add rows and pass the sum on");
}

owned_symmetric<std::byte> allocate_result(world& w, const gemm_all_reduce_problem& p) {
  return w.allocate_owned<std::byte>(static_cast<std::size_t>(p.m * p.n) * size_of(p.type),
                                     fmt::format("{} result", name));
}

}  // namespace

gemm_all_reduce::gemm_all_reduce(world& w, const gemm_all_reduce_problem& problem,
                                 const operator_options& options)
    : world_(&w.stable_view()), problem_(problem) {
  if (w.memory() == memory_kind::cuda) {
    require_phases(name, w.rank(), options.phases);
    result_ = allocate_result(w, problem);
    const auto phases = [&](std::int64_t rows) {
      return options.phases > 0 ? options.phases
                                : phases_for(with_rows(problem, rows), w.size(), w.memory());
    };
    auto all = make_summed_on_device(w, gemm_all_reduce_entry(), summed(problem),
                                     {.target = reduce_target::everywhere,
                                      .result = {result_->local(), result_->span()},
                                      .phases = phases},
                                     options);
    plan_ = all.plan;
    plans_ = std::move(all.plans);
    explanation_ = std::move(all.made.explanation) + choose_phases(w, problem, options, plan_);
    device_ = std::move(all.made.runner);
    return;
  }
  auto made = plan_summed(w, summed(problem), options);
  plan_ = made.plan;
  explanation_ = std::move(made.explanation) + choose_phases(w, problem, options, plan_);
  if (options.varying_rows) {
    plans_ = std::make_shared<const row_plans>(problem.m, [&](std::int64_t rows) {
      const auto fewer = with_rows(problem, rows);
      protocol_plan plan = plan_summed(w, summed(fewer), options).plan;
      choose_phases(w, fewer, options, plan);
      return plan;
    });
    explanation_ += told_of(*plans_);
    agree_on_summed(w, summed(problem), options, *plans_);
  } else {
    agree_on_summed(w, summed(problem), options, plan_);
  }
  result_ = allocate_result(w, problem);
  const auto how = host_options(name, problem.type, problem.partials, options);
  if (!plans_) {
    engine_ = make_process_owned<host::engine>(w, program(protocol_for(problem_, plan_)), how);
    return;
  }
  const auto protocol = [problem](std::int64_t rows, const protocol_plan& plan) {
    return protocol_for(with_rows(problem, rows), plan);
  };
  engine_ = make_process_owned<host::engine>(
      w, programs_of(plans_, most_ring_uses(*plans_, problem.n), protocol), how);
}

gemm_all_reduce::gemm_all_reduce(gemm_all_reduce&&) noexcept = default;

gemm_all_reduce& gemm_all_reduce::operator=(gemm_all_reduce&& other) noexcept {
  if (this == &other) return *this;
  end();
  world_ = other.world_;
  problem_ = other.problem_;
  plan_ = other.plan_;
  explanation_ = std::move(other.explanation_);
  plans_ = std::move(other.plans_);
  engine_ = std::move(other.engine_);
  device_ = std::move(other.device_);
  result_ = std::move(other.result_);
  return *this;
}

gemm_all_reduce::~gemm_all_reduce() { end(); }

void gemm_all_reduce::end() noexcept {
  // Who leaves with an exception does not wait for its kernels, which may write there.
  if (device_ && world_->unwinding()) result_.abandon();
  engine_.reset();
  device_.reset();
}

std::int64_t gemm_all_reduce::k_shard(const gemm_all_reduce_problem& problem, int world, int rank) {
  return k_shard_of(problem.k, world, rank);
}

matrix gemm_all_reduce::result() const {
  argument_check{name, plan_.rank}.is_whole(engine_ || device_);
  return {result_->local(), problem_.type, problem_.m, problem_.n};
}

matrix gemm_all_reduce::rows_of(matrix c, std::int64_t rows) const {
  if (plans_) c.rows = rows;
  return c;
}

void gemm_all_reduce::run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                          stream_ref stream) {
  const std::int64_t rows = rows_of_run(name, plan_.rank, "a", a.rows, problem_.m, plans_.get());
  const matrix own = rows_of(result(), rows);
  check_summed(summed(with_rows(problem_, rows)), plan_, a, weights, c, {rows, problem_.n});
  const bool into_own = c.data == own.data && c.stride == own.stride;
  const protocol_plan& plan = plans_ && rows > 0 ? plans_->at(rows) : plan_;
  const bool by_way_of_own = plan.phases == 2 && !into_own;
  if (by_way_of_own) {
    const argument_check check{name, plan_.rank};
    check.apart("a", a, as_const(own));
    check.apart("weights", weights, as_const(own));
    check.apart("c, which is not result(),", as_const(c), as_const(own));
  }
  if (device_) return run_on_device(*device_, plans_.get(), rows, a, weights, c, stream);
  host::operand_table operands;
  operands[operand::a] = local_operand(a, plan_.rank);
  operands[operand::b] = local_operand(weights, plan_.rank);
  operands[operand::c] = local_operand(as_const(by_way_of_own ? own : c), plan_.rank);
  operands[operand::c].bytes_per_rank = result_->span();
  if (plans_) {
    engine_->run(operands, rows);
  } else {
    engine_->run(operands);
  }
  if (!by_way_of_own) return;
  host::copy_tile({static_cast<std::byte*>(own.data), own.stride, own.type}, own.rows, own.cols,
                  {static_cast<std::byte*>(c.data), c.stride, c.type});
}

}  // namespace untax
