#include <fmt/format.h>

#include <untax/ops/gemm_all_reduce.hpp>

#include "engines/host/convert.hpp"
#include "engines/host/engine.hpp"
#include "ops/common/arguments.hpp"
#include "ops/gemm_all_reduce/protocol.hpp"
#include "ops/gemm_reduce_common/planning.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_all_reduce";

summed_problem summed(const gemm_all_reduce_problem& p) {
  return {name, p.m, p.n, p.k, p.type, p.partials};
}

/// What of a plan `make_plan` does not choose. Throws `invalid_argument`.
std::string choose_phases(const gemm_all_reduce_problem& problem, const operator_options& options,
                          protocol_plan& plan) {
  if (options.phases < 0 || options.phases > 2) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: option phases is {}; it has to be between 0 (untax "
                            "chooses) and 2",
                            plan.rank, name, options.phases));
  }
  plan.phases = options.phases > 0 ? options.phases : phases_for(problem, plan.world);
  return fmt::format(", {} {}", plan.phases,
                     plan.phases == 1 ? "phase: everybody adds everything"
                                      : "phases: owners add rows and pass the sum on");
}

}  // namespace

gemm_all_reduce::gemm_all_reduce(world& w, const gemm_all_reduce_problem& problem,
                                 const operator_options& options)
    : problem_(problem) {
  auto made = plan_summed(w, summed(problem), options);
  plan_ = made.plan;
  explanation_ = std::move(made.explanation) + choose_phases(problem, options, plan_);
  agree_on_summed(w, summed(problem), plan_);
  result_ = w.allocate_owned<std::byte>(
      static_cast<std::size_t>(problem.m * problem.n) * size_of(problem.type),
      fmt::format("{} result", name));
  engine_ = make_process_owned<host::engine>(
      w, program(protocol_for(problem_, plan_)),
      host::engine_options{std::string(name), problem.partials, problem.partials, options.launch,
                           options.faults});
}

gemm_all_reduce::gemm_all_reduce(gemm_all_reduce&&) noexcept = default;
gemm_all_reduce& gemm_all_reduce::operator=(gemm_all_reduce&&) noexcept = default;
gemm_all_reduce::~gemm_all_reduce() = default;

std::int64_t gemm_all_reduce::k_shard(const gemm_all_reduce_problem& problem, int world, int rank) {
  return k_shard_of(problem.k, world, rank);
}

matrix gemm_all_reduce::result() const {
  argument_check{name, plan_.rank}.is_whole(engine_ != nullptr);
  return {result_->local(), problem_.type, problem_.m, problem_.n};
}

void gemm_all_reduce::run(const const_matrix& a, const const_matrix& weights, const matrix& c) {
  const matrix own = result();
  check_summed(summed(problem_), plan_, a, weights, c, {problem_.m, problem_.n});
  const bool into_own = c.data == own.data && c.stride == own.stride;
  const bool by_way_of_own = plan_.phases == 2 && !into_own;
  if (by_way_of_own) {
    const argument_check check{name, plan_.rank};
    check.apart("a", a, as_const(own));
    check.apart("weights", weights, as_const(own));
    check.apart("c, which is not result(),", as_const(c), as_const(own));
  }
  host::operand_table operands;
  operands[operand::a] = local_operand(a, plan_.rank);
  operands[operand::b] = local_operand(weights, plan_.rank);
  operands[operand::c] = local_operand(as_const(by_way_of_own ? own : c), plan_.rank);
  operands[operand::c].bytes_per_rank = result_->span();
  engine_->run(operands);
  if (!by_way_of_own) return;
  host::copy_tile({static_cast<std::byte*>(own.data), own.stride, own.type}, own.rows, own.cols,
                  {static_cast<std::byte*>(c.data), c.stride, c.type});
}

}  // namespace untax
