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

made_sum make_summed_on_device(world& w, const operator_entry& entry, const summed_problem& problem,
                               const summed_on_device& where, const operator_options& options) {
  require_summed(w, problem);
  const gemm_problem same{.m = problem.m,
                          .n = problem.n,
                          .k = problem.k,
                          .type = problem.type,
                          .partials = problem.partials};
  made_sum all;
  all.plan = plan_on_device(w, entry, same, asked_for(text_of(problem), options), options);
  const auto plan_for = [&](std::int64_t rows) {
    protocol_plan plan = all.plan;
    plan.phases = where.phases(rows);
    return plan;
  };
  const auto make_for = [&](std::int64_t rows, pattern how) {
    const device_sum sum{
        problem.operator_name, rows,         problem.n,         problem.k, problem.type,
        problem.partials,      where.target, where.phases(rows)};
    if (how == pattern::bulk_library) {
      refuse_in_library(problem.operator_name, w.rank(), options);
      return sums_by_library(w, sum);
    }
    const bool free = !options.invariant && !options.varying_rows;
    if (w.size() == 1 && options.how == pattern::automatic && free)
      return lonely_sum_on_device(w, sum, how);
    operator_options chosen = options;
    chosen.how = how;
    return sums_on_device(w, sum, chosen, where.result);
  };
  const auto make = [&](pattern how) { return make_for(problem.m, how); };
  const pattern how = options.how == pattern::automatic ? usual_pattern : options.how;
  if (options.varying_rows) all.plans = std::make_shared<const row_plans>(problem.m, plan_for);
  all.made = all.plans ? make_for_rows(w, entry, same, how, make_for)
                       : make_on_device(w, entry, same, how, make, where.result.data);
  all.plan = plan_for(problem.m);
  all.plan.how = all.made.how;
  return all;
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
