#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/tile/shard.hpp>

#include "ops/choice/on_device.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/planned_gemm.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"
#include "ops/gemm_all_scatter/spec.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_all_scatter";

std::string text_of(const gemm_all_scatter_problem& p, const operator_options& options) {
  return asked_for(fmt::format("m {}, n {}, k {}, {}", p.m, p.n, p.k, name_of(p.type)), options);
}

}  // namespace

gemm_all_scatter::gemm_all_scatter(world& w, const gemm_all_scatter_problem& problem,
                                   const operator_options& options)
    : world_(&w.stable_view()), problem_(problem) {
  require_sizes(name, w.rank(), problem.m, problem.n, problem.k);
  planned_ = std::make_unique<planned_gemm>(w, name);
  if (w.memory() == memory_kind::cuda) {
    plan_on_device(options);
    return;
  }
  const std::int64_t cols = weights_shard(problem, w.size(), 0).rows;
  const planned_on_host host =
      plan_on_host(w, name, problem.m, text_of(problem, options), options, [&](std::int64_t rows) {
        return make_plan(w, name, {rows, cols, problem.k, problem.type}, options);
      });
  plan_ = host.plan;
  explanation_ = host.explanation;
  planned_->plans = host.plans;
  make_result();
  planned_->backend =
      backend_on_host(*planned_, host, host_options(name, problem.type, problem.type, options),
                      problem.m, cols, [problem](std::int64_t rows, const protocol_plan& plan) {
                        return gemm_all_scatter_protocol(with_rows(problem, rows), plan);
                      });
}

void gemm_all_scatter::make_result() {
  planned_->result = allocate_result(*world_, name, {problem_.m, problem_.n}, problem_.type);
  agreed_ = planned_->result->local();
}

void gemm_all_scatter::plan_on_device(const operator_options& options) {
  world& w = *world_;
  const operator_entry entry = gemm_all_scatter_entry();
  const auto& [m, n, k, type] = problem_;
  const gemm_problem problem{.m = m, .n = n, .k = k, .type = type};
  plan_ = untax::plan_on_device(w, entry, problem, text_of(problem_, options), options);
  make_result();
  const symmetric<std::byte>& own = planned_->result.get();
  if (options.varying_rows) planned_->plans = rows_on_device(name, w.rank(), options, plan_, m);
  const auto rooms = options.varying_rows ? gpu::make_room_pool(w, name) : nullptr;
  auto device = make_on_device(
      w, entry, problem, options,
      {.by_library = [&] { return gemm_all_scatter_by_library(w, problem_, options.varying_rows); },
       .by_kernels =
           [&](std::int64_t rows, const operator_options& chosen) {
             return gemm_all_scatter_on_device(w, with_rows(problem_, rows), chosen,
                                               w.size() == 1 ? 0 : own.span(), rooms.get());
           }},
      own.local());
  plan_.how = device.how;
  explanation_ = std::move(device.explanation);
  planned_->backend = std::move(device.runner);
}

gemm_all_scatter::gemm_all_scatter(gemm_all_scatter&&) noexcept = default;
gemm_all_scatter& gemm_all_scatter::operator=(gemm_all_scatter&&) noexcept = default;
gemm_all_scatter::~gemm_all_scatter() = default;

extent gemm_all_scatter::weights_shard(const gemm_all_scatter_problem& problem, int world,
                                       int rank) {
  return {sharding{problem.n, world, shard_granularity}.of(rank).size, problem.k};
}

matrix gemm_all_scatter::result() const {
  argument_check{name, world_->rank()}.is_whole(planned_ != nullptr);
  return {planned_->result->local(), problem_.type, problem_.m, problem_.n};
}

matrix gemm_all_scatter::rows_of(matrix c, std::int64_t rows) const {
  if (planned_->plans) c.rows = rows;
  return c;
}

void gemm_all_scatter::agree_on(const matrix& c, stream_ref stream) {
  if (c.data == agreed_ && c.stride == problem_.n) return;
  const int rank = world_->rank();
  if (world_->owner_of(c.data, c.span_bytes()) != rank) {
    throw error(errc::not_symmetric,
                fmt::format("rank {}: {}: c at {} ({} bytes) does not lie in this rank's symmetric "
                            "heap, but all ranks write "
                            "into it; pass result(), or memory from world.allocate",
                            rank, name, fmt::ptr(c.data), c.span_bytes()));
  }
  // A capture cannot contain a wait for other ranks.
  if (planned_->on_gpus() && is_captured(stream)) return;
  // A peer writes to the offset of its own C, so all ranks must have the same offset.
  const auto offset = static_cast<const std::byte*>(c.data) - planned_->result->local();
  world_->agree(name, fmt::format("c at offset {} from result(), row stride {}", offset, c.stride));
  agreed_ = c.stride == problem_.n ? c.data : nullptr;
}

void gemm_all_scatter::run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                           stream_ref stream) {
  const argument_check check{name, world_->rank()};
  check.is_whole(planned_ != nullptr);
  const auto rows = rows_of_run(name, check.rank, "a", a.rows, problem_.m, planned_->plans.get());
  check.gemm(a, {rows, problem_.k}, weights, weights_shard(problem_, plan_.world, check.rank), c,
             {rows, problem_.n}, problem_.type);
  (*planned_->turns)(stream, [&] {
    agree_on(rows_of(c, problem_.m), stream);  // a rank with more rows may write behind the last
                                               // one
    planned_->backend->run(rows, a, weights, c, stream);
  });
}

}  // namespace untax
