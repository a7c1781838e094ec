#include "ops/gemm_reduce_common/planning.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/arguments.hpp"
#include "ops/common/shared_by_plans.hpp"
#include "ops/gemm_reduce_common/sum_exchange.hpp"

namespace untax {

namespace {

std::string text_of(const summed_problem& problem) {
  return fmt::format("m {}, n {}, k {}, {}, partials {}", problem.m, problem.n, problem.k,
                     name_of(problem.type), name_of(problem.partials));
}

void require_summed(const world& w, const summed_problem& problem) {
  const auto name = problem.operator_name;
  require_sizes(name, w.rank(), problem.m, problem.n, problem.k);
  if (problem.partials != dtype::f32 && problem.partials != problem.type) {
    throw error(
        errc::invalid_argument,
        fmt::format("rank {}: {}: partials are {}; they have to be fp32, or {} like the operands",
                    w.rank(), name, name_of(problem.partials), name_of(problem.type)));
  }
}

made_plan plan_summed(const world& w, const summed_problem& problem,
                      const operator_options& options) {
  require_summed(w, problem);
  return make_plan(w, problem.operator_name,
                   {problem.m, problem.n, k_shard_of(problem.k, w.size(), 0), problem.type},
                   options);
}

/// bulk_synchronous is tried where the partials of a rank have at most this many bytes: with more,
/// own kernels send while they multiply, and the partials would take too much of the heap. With
/// fewer rows than least_bulk_rows there is nothing to gain.
constexpr std::int64_t most_partial_bytes = std::int64_t{32} << 20;
constexpr std::int64_t least_bulk_rows = 64;

bool may_be_bulk_synchronous(const device_sum& sum, int world) {
  const std::int64_t bytes = sum.m * sum.n * static_cast<std::int64_t>(size_of(sum.partials));
  return world > 1 && sum.m >= least_bulk_rows && bytes <= most_partial_bytes;
}

/// A library's GEMM may take the whole GPU and wait for blocks of its own, which cannot start while
/// kernels of other ranks wait for this rank.
void require_own_gpu_for_library(const world& w) {
  if (w.ranks_per_gpu() == 1) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: a library's GEMM before kernels that wait for peers needs a "
                          "GPU for each rank; here {} ranks share one",
                          w.rank(), w.ranks_per_gpu()));
}

}  // namespace

std::int64_t k_shard_of(std::int64_t k, int world, int rank) {
  return sharding{k, world, shard_granularity}.of(rank).size;
}

planned_on_host plan_summed_on_host(
    world& w, const summed_problem& problem, const operator_options& options,
    const std::function<std::string(std::int64_t rows, protocol_plan& plan)>& choose) {
  return plan_on_host(w, problem.operator_name, problem.m, asked_for(text_of(problem), options),
                      options, [&](std::int64_t rows) {
                        made_plan planned = plan_summed(w, with_rows(problem, rows), options);
                        planned.explanation += choose(rows, planned.plan);
                        return planned;
                      });
}

made_sum make_summed_on_device(world& w, const operator_entry& entry, const summed_problem& problem,
                               const summed_on_device& where, const operator_options& options) {
  require_summed(w, problem);
  const gemm_problem same{.m = problem.m,
                          .n = problem.n,
                          .k = problem.k,
                          .type = problem.type,
                          .partials = problem.partials};
  made_sum planned_sum;
  planned_sum.plan = plan_on_device(w, entry, same, asked_for(text_of(problem), options), options);
  const auto plan_for = [&](std::int64_t rows) {
    protocol_plan plan = planned_sum.plan;
    plan.phases = where.phases(rows);
    return plan;
  };
  const auto sum_of = [&](std::int64_t rows) {
    return device_sum{
        problem.operator_name, rows,         problem.n,         problem.k, problem.type,
        problem.partials,      where.target, where.phases(rows)};
  };
  const bool lonely = w.size() == 1 && options.how == pattern::automatic && !options.invariant &&
                      !options.varying_rows;
  const auto rooms = options.varying_rows ? gpu::make_room_pool(w, problem.operator_name) : nullptr;
  if (options.varying_rows)
    planned_sum.plans = std::make_shared<const row_plans>(row_ends(problem.m), plan_for);
  shared_by_plans<sum_exchange> exchange;
  planned_sum.made = make_on_device(
      w, entry, same, options,
      {.by_library = [&] { return sums_by_library(w, sum_of(problem.m), options.varying_rows); },
       .by_kernels =
           [&](std::int64_t rows, const operator_options& chosen) {
             const device_sum sum = sum_of(rows);
             if (lonely) return lonely_sum_on_device(w, sum, chosen.how);
             if (chosen.how == pattern::bulk_synchronous && w.size() > 1) {
               refuse_invariant(sum.operator_name, w.rank(), options);
               require_own_gpu_for_library(w);
               return sums_after_library(w, sum, options.varying_rows, exchange.get(sum.m, [&] {
                 return exchange_by_kernels(w, sum, options.varying_rows, where.result);
               }));
             }
             return sums_on_device(w, sum, chosen, where.result, rooms.get());
           },
       .usual =
           [&](std::int64_t rows) {
             const device_sum sum = sum_of(rows);
             std::vector<pattern> usual = usual_patterns_of(sum, w.size());
             if (lonely) usual.resize(1);
             if (may_be_bulk_synchronous(sum, w.size())) usual.push_back(pattern::bulk_synchronous);
             return usual;
           }},
      nullptr);  // the timed C is not the operator's own, as a caller's usually is not
  planned_sum.plan = plan_for(problem.m);
  planned_sum.plan.how = planned_sum.made.how;
  return planned_sum;
}

void check_summed(const summed_problem& problem, const protocol_plan& plan, const const_matrix& a,
                  const const_matrix& weights, const matrix& c, const extent& size_of_c) {
  const argument_check check{problem.operator_name, plan.rank};
  const std::int64_t depth = k_shard_of(problem.k, plan.world, plan.rank);
  check.gemm(a, {problem.m, depth}, weights, {problem.n, depth}, c, size_of_c, problem.type);
}

}  // namespace untax
