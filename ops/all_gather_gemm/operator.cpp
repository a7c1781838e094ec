#include <fmt/format.h>

#include <untax/ops/all_gather_gemm.hpp>
#include <untax/tile/shard.hpp>

#include "ops/all_gather_gemm/device.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/choice/on_device.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/host_operator.hpp"
#include "ops/common/own_columns_first.hpp"
#include "ops/common/registry.hpp"

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
  require_size(name, rank_, "m", problem.m);
  require_size(name, rank_, "n", problem.n);
  require_size(name, rank_, "k", problem.k);
  if (w.memory() == memory_kind::cuda) {
    plan_on_device(w, options);
    return;
  }
  const extent full = a_shard(problem, w.size(), 0);
  const auto make = [&](std::int64_t rows) {
    return make_plan(w, name, {rows, problem.n, full.cols, problem.type}, options);
  };
  const planned_on_host made =
      plan_on_host(w, name, problem, text_of(problem, options), options, make);
  plan_ = made.plan;
  explanation_ = made.explanation;
  plans_ = made.plans;
  const bool in_order = options.invariant && problem.gather == gather_axis::k;
  const sharding own_first = in_order ? a_sharding(problem, w.size()) : sharding{};
  engine_ = engine_on_host(
      w, made, problem.m, 1, [problem, own_first](std::int64_t rows, const protocol_plan& plan) {
        return own_columns_first(all_gather_gemm_protocol(with_rows(problem, rows), plan),
                                 own_first);
      });
}

void all_gather_gemm::plan_on_device(world& w, const operator_options& options) {
  const operator_entry entry = all_gather_gemm_entry();
  const auto& [m, n, k, type, gather] = problem_;
  const gemm_problem problem{.m = m, .n = n, .k = k, .type = type, .gather = gather};
  plan_ = untax::plan_on_device(w, entry, problem, text_of(problem_, options), options);
  const auto make_for = [&](std::int64_t rows, pattern how) {
    if (how == pattern::bulk_library) {
      refuse_in_library(name, rank_, options);
      return all_gather_gemm_by_library(w, problem_);
    }
    operator_options chosen = options;
    chosen.how = how;
    return all_gather_gemm_on_device(w, with_rows(problem_, rows), chosen);
  };
  const auto make = [&](pattern how) { return make_for(problem_.m, how); };
  if (options.varying_rows) plans_ = rows_on_device(name, rank_, options, plan_, m);
  auto made = plans_ ? make_for_rows(w, entry, problem, options.how, make_for)
                     : make_on_device(w, entry, problem, options.how, make, nullptr);
  plan_.how = made.how;
  explanation_ = std::move(made.explanation);
  device_ = std::move(made.runner);
}

all_gather_gemm::all_gather_gemm(all_gather_gemm&&) noexcept = default;
all_gather_gemm& all_gather_gemm::operator=(all_gather_gemm&&) noexcept = default;
all_gather_gemm::~all_gather_gemm() = default;

extent all_gather_gemm::a_shard(const all_gather_gemm_problem& problem, int world, int rank) {
  const bool by_rows = problem.gather == gather_axis::rows;
  const auto size = a_sharding(problem, world).of(rank).size;
  return by_rows ? extent{size, problem.k} : extent{problem.m, size};
}

void all_gather_gemm::run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                          stream_ref stream) {
  const argument_check check{name, rank_};
  check.is_whole(engine_ || device_);
  const std::int64_t rows = rows_of_run(name, rank_, "c", c.rows, problem_.m, plans_.get());
  const auto problem = with_rows(problem_, rows);
  check.matrix_of("a", a, a_shard(problem, plan_.world, rank_), problem.type);
  check.matrix_of("weights", weights, {problem.n, problem.k}, problem.type);
  check.matrix_of("c", as_const(c), {rows, problem.n}, problem.type);
  check.apart("a", a, as_const(c));
  check.apart("weights", weights, as_const(c));

  if (device_) return run_on_device(*device_, plans_.get(), rows, a, weights, c, stream);
  run_on_host(*engine_, plans_.get(), rows, rank_, a, weights, c);
}

}  // namespace untax
