#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <untax/core/matrix.hpp>
#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/world/world.hpp>

#include "ops/choice/on_device.hpp"
#include "ops/common/planned_gemm.hpp"
#include "ops/common/planning.hpp"
#include "ops/common/reduce_target.hpp"
#include "ops/common/row_plans.hpp"
#include "ops/gemm_reduce_common/device.hpp"

namespace untax {

/// The common part of the problems of operators that sum a GEMM over ranks.
struct summed_problem {
  std::string_view operator_name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::bf16;
  dtype partials = dtype::f32;
};

/// The part of the reduction dimension that a rank has.
[[nodiscard]] std::int64_t k_shard_of(std::int64_t k, int world, int rank);

/// Plans a summed GEMM on the host: `choose(rows, plan)` sets the operator's own fields of a plan,
/// and describes them. Compares problem and plan with those of the other ranks; collective. Throws
/// `invalid_argument` for sizes, types and options that are not possible.
[[nodiscard]] planned_on_host plan_summed_on_host(
    world& w, const summed_problem& problem, const operator_options& options,
    const std::function<std::string(std::int64_t rows, protocol_plan& plan)>& choose =
        [](std::int64_t, protocol_plan&) { return std::string(); });

/// The destination of a sum in a world of GPUs.
struct summed_on_device {
  reduce_target target = reduce_target::owner;
  symmetric_result result = {};
  /// The number of phases for a number of rows, if the sum goes to all ranks.
  std::function<int(std::int64_t rows)> phases = [](std::int64_t) { return 1; };
};
/// The members that the class of such an operator has in a world of GPUs.
struct made_sum {
  made_on_device made;
  protocol_plan plan;
  std::shared_ptr<const row_plans> plans;  ///< with `varying_rows`, else null
};
/// Plans and makes the operator in a world of GPUs. Collective. Throws the errors of
/// `plan_summed_on_host`, `invalid_argument` for problems that no kernel multiplies,
/// `disagreement`, `unsupported` for a pattern that does not exist on GPUs, `out_of_memory`.
[[nodiscard]] made_sum make_summed_on_device(world& w, const operator_entry& entry,
                                             const summed_problem& problem,
                                             const summed_on_device& where,
                                             const operator_options& options);

/// Checks arguments: `a` has to be [m, k_r], `weights` [n, k_r], `c` of the given size, apart from
/// both.
void check_summed(const summed_problem& problem, const protocol_plan& plan, const const_matrix& a,
                  const const_matrix& weights, const matrix& c, const extent& size_of_c);

}  // namespace untax
