#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/gemm_all_scatter.hpp>
#include <untax/tile/shard.hpp>

#include "ops/choice/on_device.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/host_operator.hpp"
#include "ops/common/registry.hpp"
#include "ops/gemm_all_scatter/device.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace untax {
namespace {

constexpr std::string_view name = "gemm_all_scatter";

std::string text_of(const gemm_all_scatter_problem& p, const operator_options& options) {
  return asked_for(fmt::format("m {}, n {}, k {}, {}", p.m, p.n, p.k, name_of(p.type)), options);
}

owned_symmetric<std::byte> allocate_result(world& w, const gemm_all_scatter_problem& p) {
  return w.allocate_owned<std::byte>(static_cast<std::size_t>(p.m * p.n) * size_of(p.type),
                                     fmt::format("{} result", name));
}

}  // namespace

gemm_all_scatter::gemm_all_scatter(world& w, const gemm_all_scatter_problem& problem,
                                   const operator_options& options)
    : world_(&w.stable_view()), problem_(problem) {
  require_size(name, w.rank(), "m", problem.m);
  require_size(name, w.rank(), "n", problem.n);
  require_size(name, w.rank(), "k", problem.k);
  if (w.memory() == memory_kind::cuda) {
    plan_on_device(options);
    return;
  }
  const std::int64_t cols = weights_shard(problem, w.size(), 0).rows;
  const auto make = [&](std::int64_t rows) {
    return make_plan(w, name, {rows, cols, problem.k, problem.type}, options);
  };
  const planned_on_host made =
      plan_on_host(w, name, problem, text_of(problem, options), options, make);
  plan_ = made.plan;
  explanation_ = made.explanation;
  plans_ = made.plans;
  result_ = allocate_result(w, problem);
  agreed_ = result_->local();
  engine_ = engine_on_host(w, made, problem.m, plans_ ? most_ring_uses(*plans_, cols) : 1,
                           [problem](std::int64_t rows, const protocol_plan& plan) {
                             return gemm_all_scatter_protocol(with_rows(problem, rows), plan);
                           });
}

void gemm_all_scatter::plan_on_device(const operator_options& options) {
  world& w = *world_;
  const operator_entry entry = gemm_all_scatter_entry();
  const auto& [m, n, k, type] = problem_;
  const gemm_problem problem{.m = m, .n = n, .k = k, .type = type};
  plan_ = untax::plan_on_device(w, entry, problem, text_of(problem_, options), options);
  result_ = allocate_result(w, problem_);
  agreed_ = result_->local();
  const std::int64_t between = w.size() == 1 ? 0 : result_->span();
  const auto make_for = [&](std::int64_t rows, pattern how) {
    if (how == pattern::bulk_library) {
      refuse_in_library(name, w.rank(), options);
      return gemm_all_scatter_by_library(w, problem_);
    }
    operator_options chosen = options;
    chosen.how = how;
    return gemm_all_scatter_on_device(w, with_rows(problem_, rows), chosen, between);
  };
  const auto make = [&](pattern how) { return make_for(problem_.m, how); };
  if (options.varying_rows) plans_ = rows_on_device(name, w.rank(), options, plan_, m);
  auto made = plans_ ? make_for_rows(w, entry, problem, options.how, make_for)
                     : make_on_device(w, entry, problem, options.how, make, result_->local());
  plan_.how = made.how;
  explanation_ = std::move(made.explanation);
  device_ = std::move(made.runner);
}

gemm_all_scatter::gemm_all_scatter(gemm_all_scatter&&) noexcept = default;

gemm_all_scatter& gemm_all_scatter::operator=(gemm_all_scatter&& other) noexcept {
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
  agreed_ = other.agreed_;
  return *this;
}

gemm_all_scatter::~gemm_all_scatter() { end(); }

void gemm_all_scatter::end() noexcept {
  // Who leaves with an exception does not wait for its kernels, which may write there.
  if (device_ && world_->unwinding()) result_.abandon();
  engine_.reset();
  device_.reset();
}

extent gemm_all_scatter::weights_shard(const gemm_all_scatter_problem& problem, int world,
                                       int rank) {
  return {sharding{problem.n, world, shard_granularity}.of(rank).size, problem.k};
}

matrix gemm_all_scatter::result() const {
  argument_check{name, world_->rank()}.is_whole(engine_ || device_);
  return {result_->local(), problem_.type, problem_.m, problem_.n};
}

matrix gemm_all_scatter::rows_of(matrix c, std::int64_t rows) const {
  if (plans_) c.rows = rows;
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
  // Waiting for others is nothing that a capture can hold.
  if (device_ && is_captured(stream)) return;
  // Peers write where this rank's C is in their own view, so the offsets have to be the same.
  const auto offset = static_cast<const std::byte*>(c.data) - result_->local();
  world_->agree(name, fmt::format("c at offset {} from result(), row stride {}", offset, c.stride));
  agreed_ = c.stride == problem_.n ? c.data : nullptr;
}

void gemm_all_scatter::run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                           stream_ref stream) {
  const int rank = world_->rank();
  const argument_check check{name, rank};
  check.is_whole(engine_ || device_);
  const std::int64_t rows = rows_of_run(name, rank, "a", a.rows, problem_.m, plans_.get());
  check.matrix_of("a", a, {rows, problem_.k}, problem_.type);
  check.matrix_of("weights", weights, weights_shard(problem_, plan_.world, rank), problem_.type);
  check.matrix_of("c", as_const(c), {rows, problem_.n}, problem_.type);
  check.apart("a", a, as_const(c));
  check.apart("weights", weights, as_const(c));
  // Whoever has another number of rows still writes into memory that is there for it.
  agree_on(rows_of(c, problem_.m), stream);
  if (device_) return run_on_device(*device_, plans_.get(), rows, a, weights, c, stream);
  run_on_host(*engine_, plans_.get(), rows, rank, a, weights, c, result_->span());
}

}  // namespace untax
