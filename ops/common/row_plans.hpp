#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/row_program.hpp>
#include <untax/world/world.hpp>

#include "ops/common/row_table.hpp"

namespace untax {

/// The plans of an operator for every number of rows up to its capacity.
class row_plans : public row_table<protocol_plan> {
 public:
  /// `make(rows)` plans for `rows` rows. Each run has a set of its own, so plans have one set.
  template <class Make>
  row_plans(std::vector<std::int64_t> ends, const Make& make)
      : row_table(std::move(ends), [&](std::int64_t rows) {
          protocol_plan plan = make(rows);
          plan.sets = 1;
          return plan;
        }) {}
};

/// Compares problem and plans with those of the other ranks; collective.
void agree_on_plans(world& w, std::string_view operator_name, const std::string& problem,
                    const row_plans& plans);

/// The rows of a run: those of an argument if there are plans for different numbers, else those of
/// the problem. Throws `invalid_argument` for more than the capacity.
[[nodiscard]] std::int64_t rows_of_run(std::string_view operator_name, int rank,
                                       std::string_view argument, std::int64_t given,
                                       std::int64_t planned, const row_plans* plans);

/// ", any number of rows up to 64 by 11 plans".
[[nodiscard]] std::string told_of(const row_plans& plans);

/// The most tiles that a rank passes through one ring (tile_ring.hpp) in a run, for any number of
/// rows; `cols` are the columns of its result.
[[nodiscard]] std::uint64_t most_ring_uses(const row_plans& plans, std::int64_t cols);

/// The plans on GPUs, where each is the plan of the device. Throws `unsupported` for pulls, for
/// which kernels take the steps of the most rows.
[[nodiscard]] std::shared_ptr<const row_plans> rows_on_device(std::string_view operator_name,
                                                              int rank,
                                                              const operator_options& options,
                                                              const protocol_plan& plan,
                                                              std::int64_t capacity);

/// The problem with another number of rows.
template <class Problem>
[[nodiscard]] Problem with_rows(Problem problem, std::int64_t rows) {
  problem.m = rows;
  return problem;
}

/// The programs of an operator: `protocol(rows, plan)` is its protocol for `rows` rows.
template <class ProtocolFor>
[[nodiscard]] row_program programs_of(const std::shared_ptr<const row_plans>& plans,
                                      std::uint64_t most_uses, const ProtocolFor& protocol) {
  return {plans->ends(), most_uses, [plans, protocol](std::int64_t rows, auto&& use) {
            use(protocol(rows, plans->at(rows)));
          }};
}

}  // namespace untax
