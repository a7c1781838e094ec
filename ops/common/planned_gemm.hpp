#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <untax/core/matrix.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/ops/options.hpp>
#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/tile/program.hpp>
#include <untax/world/world.hpp>

#include "engines/host/engine.hpp"
#include "ops/common/gemm_backend.hpp"
#include "ops/common/planning.hpp"
#include "ops/common/row_plans.hpp"
#include "ops/common/run_turns.hpp"

namespace untax {

/// The members that the classes of GEMM operators share.
struct planned_gemm {
  /// `operator_name` is for errors, and has to outlive this.
  planned_gemm(world& w, std::string_view operator_name)
      : ranks(w.stable_view()),
        name(operator_name),
        turns(make_process_owned<run_turns>(w, operator_name)) {}
  planned_gemm(const planned_gemm&) = delete;
  planned_gemm& operator=(const planned_gemm&) = delete;
  /// After an exception the destructor does not wait for kernels, which may still write the result.
  /// The result is then left to the world.
  ~planned_gemm();

  [[nodiscard]] bool on_gpus() const { return ranks.memory() == memory_kind::cuda; }

  world& ranks;
  std::string_view name;
  process_owned<run_turns> turns;
  /// The operator's own result, if peers write it; destroyed last.
  owned_symmetric<std::byte> result;
  std::shared_ptr<const row_plans> plans;  ///< set if runs have different numbers of rows
  process_owned<gemm_backend> backend;     ///< runs the operator, within a turn; destroyed first
};

/// The operator's own C. Collective.
[[nodiscard]] owned_symmetric<std::byte> allocate_result(world& w, std::string_view name,
                                                         const extent& size, dtype type);

/// The plan of a GEMM operator on the host: one, or one for each number of rows.
struct planned_on_host {
  protocol_plan plan;  ///< of the most rows
  std::string explanation;
  std::shared_ptr<const row_plans> plans;  ///< set if options ask for rows that vary
};

/// `make(rows)` plans for `rows` rows of A, at most `most`. Compares the problem, given as `text`,
/// and the plans with those of the other ranks; collective.
template <class Make>
[[nodiscard]] planned_on_host plan_on_host(world& w, std::string_view name, std::int64_t most,
                                           const std::string& text, const operator_options& options,
                                           const Make& make) {
  made_plan planned = make(most);
  planned_on_host host_plans{planned.plan, std::move(planned.explanation), nullptr};
  if (!options.varying_rows) {
    agree_on_plan(w, name, text, host_plans.plan);
    return host_plans;
  }
  host_plans.plans = std::make_shared<const row_plans>(
      number_ends(most), [&](std::int64_t rows) { return make(rows).plan; });
  host_plans.explanation += told_of(*host_plans.plans);
  agree_on_plans(w, name, text, *host_plans.plans);
  return host_plans;
}

/// The backend of an operator. If peers write the result, `planned` already has it, and the Cs of
/// neighbouring ranks are as far apart as their results. `protocol(rows, plan)` is the protocol for
/// `rows` rows, at most `most`. Results that pass through rings (tile_ring.hpp) have `ring_columns`
/// columns at a rank. Collective.
template <class ProtocolFor>
[[nodiscard]] process_owned<gemm_backend> backend_on_host(
    const planned_gemm& planned, const planned_on_host& host_plans, const host::engine_options& how,
    std::int64_t most, std::int64_t ring_columns, const ProtocolFor& protocol) {
  const auto backend = [&](auto&& programs) {
    return make_process_owned<host_gemm>(planned.ranks, planned.name, host_plans.plans,
                                         planned.result ? planned.result->span() : 0,
                                         std::forward<decltype(programs)>(programs), how);
  };
  if (!host_plans.plans) return backend(program(protocol(most, host_plans.plan)));
  return backend(
      programs_of(host_plans.plans, most_ring_uses(*host_plans.plans, ring_columns), protocol));
}

}  // namespace untax
