#include "ops/gemm_reduce_common/planning.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/arguments.hpp"

namespace untax {

namespace {

std::string text_of(const summed_problem& problem) {
  return fmt::format("m {}, n {}, k {}, {}, partials {}", problem.m, problem.n, problem.k,
                     name_of(problem.type), name_of(problem.partials));
}

}  // namespace

std::int64_t k_shard_of(std::int64_t k, int world, int rank) {
  return sharding{k, world, shard_granularity}.of(rank).size;
}

namespace {

void require_summed(const world& w, const summed_problem& problem) {
  const auto name = problem.operator_name;
  require_size(name, w.rank(), "m", problem.m);
  require_size(name, w.rank(), "n", problem.n);
  require_size(name, w.rank(), "k", problem.k);
  if (problem.partials != dtype::f32 && problem.partials != problem.type) {
    throw error(
        errc::invalid_argument,
        fmt::format("rank {}: {}: partials are {}; they have to be fp32 or, as the operands, {}",
                    w.rank(), name, name_of(problem.partials), name_of(problem.type)));
  }
}

}  // namespace

made_plan plan_summed(const world& w, const summed_problem& problem,
                      const operator_options& options) {
  require_summed(w, problem);
  return make_plan(w, problem.operator_name,
                   {problem.m, problem.n, k_shard_of(problem.k, w.size(), 0), problem.type},
                   options);
}

void agree_on_summed(world& w, const summed_problem& problem, const operator_options& options,
                     const protocol_plan& plan) {
  agree_on_plan(w, problem.operator_name, asked_for(text_of(problem), options), plan);
}

void agree_on_summed(world& w, const summed_problem& problem, const operator_options& options,
                     const row_plans& plans) {
  agree_on_plans(w, problem.operator_name, asked_for(text_of(problem), options), plans);
}

made_on_device make_summed_on_device(world& w, const operator_entry& entry,
                                     const summed_problem& problem, const summed_on_device& where,
                                     const operator_options& options, protocol_plan& plan) {
  require_summed(w, problem);
  refuse_varying_rows(problem.operator_name, w.rank(), options);
  const gemm_problem same{.m = problem.m,
                          .n = problem.n,
                          .k = problem.k,
                          .type = problem.type,
                          .partials = problem.partials};
  plan = plan_on_device(w, entry, same, asked_for(text_of(problem), options), options);
  plan.phases = where.phases;
  const device_sum sum{problem.operator_name, problem.m,        problem.n,    problem.k,
                       problem.type,          problem.partials, where.target, where.phases};
  const auto make = [&](pattern how) {
    if (how == pattern::bulk_library) {
      refuse_invariant(problem.operator_name, w.rank(), options);
      return sums_by_library(w, sum);
    }
    if (w.size() == 1 && options.how == pattern::automatic && !options.invariant)
      return lonely_sum_on_device(w, sum, how);
    operator_options chosen = options;
    chosen.how = how;
    return sums_on_device(w, sum, chosen, where.result);
  };
  const pattern how = options.how == pattern::automatic ? usual_pattern : options.how;
  made_on_device made = make_on_device(w, entry, same, how, make, where.result.data);
  plan.how = made.how;
  return made;
}

void check_summed(const summed_problem& problem, const protocol_plan& plan, const const_matrix& a,
                  const const_matrix& weights, const matrix& c, const extent& size_of_c) {
  const argument_check check{problem.operator_name, plan.rank};
  const std::int64_t depth = k_shard_of(problem.k, plan.world, plan.rank);
  check.matrix_of("a", a, {problem.m, depth}, problem.type);
  check.matrix_of("weights", weights, {problem.n, depth}, problem.type);
  check.matrix_of("c", as_const(c), size_of_c, problem.type);
  check.apart("a", a, as_const(c));
  check.apart("weights", weights, as_const(c));
}

}  // namespace untax
