#include <fmt/format.h>

#include <untax/ops/all_gather_gemm.hpp>
#include <untax/tile/shard.hpp>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/gathered_product.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "ops/choice/on_device.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/own_columns_first.hpp"
#include "ops/common/planned_gemm.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/shared_by_plans.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "all_gather_gemm";

std::string text_of(const all_gather_gemm_problem& p, const operator_options& options) {
  return asked_for(fmt::format("m {}, n {}, k {}, {}, gather = {}", p.m, p.n, p.k, name_of(p.type),
                               name_of(p.gather)),
                   options);
}

}  // namespace

all_gather_gemm::all_gather_gemm(world& w, const all_gather_gemm_problem& problem,
                                 const operator_options& options)
    : problem_(problem), rank_(w.rank()) {
  require_sizes(name, rank_, problem.m, problem.n, problem.k);
  planned_ = std::make_unique<planned_gemm>(w, name);
  if (w.memory() == memory_kind::cuda) {
    plan_on_device(options);
    return;
  }
  const extent full = a_shard(problem, w.size(), 0);
  const planned_on_host host =
      plan_on_host(w, name, problem.m, text_of(problem, options), options, [&](std::int64_t rows) {
        return make_plan(w, name, {rows, problem.n, full.cols, problem.type}, options);
      });
  plan_ = host.plan;
  explanation_ = host.explanation;
  planned_->plans = host.plans;
  const bool in_order = options.invariant && problem.gather == gather_axis::k;
  const sharding own_first = in_order ? a_sharding(problem, w.size()) : sharding{};
  planned_->backend = backend_on_host(
      *planned_, host, host_options(name, problem.type, problem.type, options), problem.m, 0,
      [problem, own_first](std::int64_t rows, const protocol_plan& plan) {
        return own_columns_first(all_gather_gemm_protocol(with_rows(problem, rows), plan),
                                 own_first);
      });
}

void all_gather_gemm::plan_on_device(const operator_options& options) {
  world& w = planned_->ranks;
  const operator_entry entry = all_gather_gemm_entry();
  const auto& [m, n, k, type, gather] = problem_;
  const gemm_problem problem{.m = m, .n = n, .k = k, .type = type, .gather = gather};
  plan_ = untax::plan_on_device(w, entry, problem, text_of(problem_, options), options);
  if (options.varying_rows) planned_->plans = rows_on_device(name, rank_, options, plan_, m);
  const auto rooms = options.varying_rows ? gpu::make_room_pool(w, name) : nullptr;
  const auto by_library = [&] {
    return all_gather_gemm_by_library(w, problem_, options.varying_rows);
  };
  shared_by_plans<row_gather> gathers;
  const auto by_kernels = [&](std::int64_t rows, const operator_options& chosen) {
    const all_gather_gemm_problem of_rows = with_rows(problem_, rows);
    if (chosen.how != pattern::bulk_synchronous || !may_gather_first(of_rows, chosen))
      return all_gather_gemm_on_device(w, of_rows, chosen, rooms.get());
    auto all_rows = w.size() == 1 ? nullptr : gathers.get(rows, [&] {
      return gather_rows(w, of_rows, chosen.varying_rows);
    });
    return product_of_gathered(w, of_rows, chosen, std::move(all_rows));
  };
  const auto usual = [&](std::int64_t rows) {
    return usual_gathers(with_rows(problem_, rows), options, w.size());
  };
  auto device =
      make_on_device(w, entry, problem, options, {by_library, by_kernels, usual}, nullptr);
  plan_.how = device.how;
  explanation_ = std::move(device.explanation);
  planned_->backend = std::move(device.runner);
}

all_gather_gemm::all_gather_gemm(all_gather_gemm&&) noexcept = default;
all_gather_gemm& all_gather_gemm::operator=(all_gather_gemm&&) noexcept = default;
all_gather_gemm::~all_gather_gemm() = default;

extent all_gather_gemm::a_shard(const all_gather_gemm_problem& problem, int world, int rank) {
  return a_shard_of(problem, world, rank);
}

void all_gather_gemm::run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                          stream_ref stream) {
  const argument_check check{name, rank_};
  check.is_whole(planned_ != nullptr);
  const std::int64_t rows =
      rows_of_run(name, rank_, "c", c.rows, problem_.m, planned_->plans.get());
  const auto& [m, n, k, type, gather] = problem_;
  check.gemm(a, a_shard(with_rows(problem_, rows), plan_.world, rank_), weights, {n, k}, c,
             {rows, n}, type);
  (*planned_->turns)(stream, [&] { planned_->backend->run(rows, a, weights, c, stream); });
}

}  // namespace untax
