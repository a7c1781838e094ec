#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <untax/core/matrix.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/ops/options.hpp>
#include <untax/tile/program.hpp>
#include <untax/world/world.hpp>

#include "engines/host/engine.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/planning.hpp"
#include "ops/common/row_plans.hpp"

namespace untax {

/// What an operator of a GEMM does on the host: one plan, or one for each number of rows.
struct planned_on_host {
  protocol_plan plan;  ///< of the most rows
  std::string explanation;
  std::shared_ptr<const row_plans> plans;  ///< where options ask for rows that vary
  host::engine_options how;
};

/// `make(rows)` plans for so many rows of A. Compares `problem`, which `text` says, and what was
/// planned with those of the other ranks; collective.
template <class Problem, class Make>
[[nodiscard]] planned_on_host plan_on_host(world& w, std::string_view name, const Problem& problem,
                                           const std::string& text, const operator_options& options,
                                           const Make& make) {
  made_plan made = make(problem.m);
  planned_on_host all{made.plan, std::move(made.explanation), nullptr,
                      host_options(name, problem.type, problem.type, options)};
  if (!options.varying_rows) {
    agree_on_plan(w, name, text, all.plan);
    return all;
  }
  all.plans = std::make_shared<const row_plans>(problem.m,
                                                [&](std::int64_t rows) { return make(rows).plan; });
  all.explanation += told_of(*all.plans);
  agree_on_plans(w, name, text, *all.plans);
  return all;
}

/// Its engine: `protocol(rows, plan)` is the protocol for so many rows, `rows` the most; where they
/// vary a rank passes `most_uses` tiles through one ring at most. Collective.
template <class ProtocolFor>
[[nodiscard]] auto engine_on_host(world& w, const planned_on_host& made, std::int64_t rows,
                                  std::uint64_t most_uses, const ProtocolFor& protocol) {
  return made.plans
             ? make_process_owned<host::engine>(w, programs_of(made.plans, most_uses, protocol),
                                                made.how)
             : make_process_owned<host::engine>(w, program(protocol(rows, made.plan)), made.how);
}

/// A run of so many rows by rank `rank`; `plans` as above. C of neighbouring ranks lie
/// `bytes_per_rank` apart, where peers write it.
inline void run_on_host(host::engine& engine, const row_plans* plans, std::int64_t rows, int rank,
                        const const_matrix& a, const const_matrix& weights, const matrix& c,
                        std::ptrdiff_t bytes_per_rank = 0) {
  host::operand_table operands;
  operands[operand::a] = local_operand(a, rank);
  operands[operand::b] = local_operand(weights, rank);
  operands[operand::c] = local_operand(as_const(c), rank);
  operands[operand::c].bytes_per_rank = bytes_per_rank;
  if (plans != nullptr) return engine.run(operands, rows);
  engine.run(operands);
}

}  // namespace untax
