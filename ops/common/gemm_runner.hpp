#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <untax/core/matrix.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/options.hpp>
#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/tile/program.hpp>
#include <untax/world/world.hpp>

#include "engines/host/engine.hpp"
#include "ops/common/device_runner.hpp"
#include "ops/common/planning.hpp"
#include "ops/common/row_plans.hpp"
#include "ops/common/run_turns.hpp"

namespace untax {

/// Runs a GEMM operator for its class: by an engine of the host, or by kernels in a world of GPUs.
struct gemm_runner {
  /// `operator_name` is for errors, and has to outlive this.
  gemm_runner(world& w, std::string_view operator_name)
      : ranks(w.stable_view()),
        name(operator_name),
        turns(make_process_owned<run_turns>(w, operator_name)) {}
  gemm_runner(const gemm_runner&) = delete;
  gemm_runner& operator=(const gemm_runner&) = delete;
  /// After an exception it does not wait for its kernels, which may still write the result. The
  /// result is then left to the world.
  ~gemm_runner();

  /// Runs with so many rows, within a turn of `turns`; the arguments have been checked. If peers
  /// write C, the Cs of neighbouring ranks are as far apart as their results.
  void run(std::int64_t rows, const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream);

  world& ranks;
  std::string_view name;
  process_owned<run_turns> turns;
  owned_symmetric<std::byte> result;       ///< its own, if peers write it; destroyed last
  std::shared_ptr<const row_plans> plans;  ///< where runs have different numbers of rows
  process_owned<host::engine> engine;
  process_owned<device_runner> device;  ///< instead, in a world of GPUs
};

/// The operator's own C. Collective.
[[nodiscard]] owned_symmetric<std::byte> allocate_result(world& w, std::string_view name,
                                                         const extent& size, dtype type);

/// The plan of a GEMM operator on the host: one, or one for each number of rows.
struct planned_on_host {
  protocol_plan plan;  ///< of the most rows
  std::string explanation;
  std::shared_ptr<const row_plans> plans;  ///< where options ask for rows that vary
};

/// `make(rows)` plans for so many rows of A, at most `most`. Compares the problem, as `text` has
/// it, and what was planned with those of the other ranks; collective.
template <class Make>
[[nodiscard]] planned_on_host plan_on_host(world& w, std::string_view name, std::int64_t most,
                                           const std::string& text, const operator_options& options,
                                           const Make& make) {
  made_plan made = make(most);
  planned_on_host all{made.plan, std::move(made.explanation), nullptr};
  if (!options.varying_rows) {
    agree_on_plan(w, name, text, all.plan);
    return all;
  }
  all.plans =
      std::make_shared<const row_plans>(most, [&](std::int64_t rows) { return make(rows).plan; });
  all.explanation += told_of(*all.plans);
  agree_on_plans(w, name, text, *all.plans);
  return all;
}

/// Its engine. `protocol(rows, plan)` is the protocol for so many rows, at most `most`. Results
/// that pass through rings (tile_ring.hpp) have `ring_columns` columns at a rank. Collective.
template <class ProtocolFor>
[[nodiscard]] auto engine_on_host(world& w, const planned_on_host& made,
                                  const host::engine_options& how, std::int64_t most,
                                  std::int64_t ring_columns, const ProtocolFor& protocol) {
  if (!made.plans)
    return make_process_owned<host::engine>(w, program(protocol(most, made.plan)), how);
  return make_process_owned<host::engine>(
      w, programs_of(made.plans, most_ring_uses(*made.plans, ring_columns), protocol), how);
}

}  // namespace untax
