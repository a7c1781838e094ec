#include "ops/checks.hpp"

#include <type_traits>
#include <vector>

#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/all_gather_gemm/gathered_product.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/gemm_all_scatter/device_schedule.hpp"
#include "ops/gemm_reduce_common/device_schedule.hpp"
#include "ops/operators.hpp"

namespace untax {

std::vector<protocol_variant> variants_of(const operator_spec& operation) {
  std::vector<protocol_variant> variants;
  library_operators::for_each([&]<class Operator>() {
    if (spec<Operator>.name != operation.name) return;
    if constexpr (requires { spec_of<Operator>::variants(); }) {
      variants = spec_of<Operator>::variants();
    } else if constexpr (std::is_base_of_v<collective, Operator>) {
      variants = variants_of(collective_named(operation.name));  // variants keep a reference to it
    } else if constexpr (requires { spec_of<Operator>::entry(); }) {
      variants = variants_of(operator_named(operation.name));
    }
  });
  return variants;
}

bool has_gemm_plans(const operator_entry& entry) noexcept {
  return entry.on_gpus && (entry.gathers || entry.columns_sharded || entry.sums_to);
}

device_findings check_gemm_plans(const operator_entry& entry, const gemm_problem& p, int ranks,
                                 const operator_options& options, int multiprocessors) {
  if (entry.gathers) {
    const all_gather_gemm_problem problem{p.m, p.n, p.k, p.type, p.gather};
    if (options.how == pattern::bulk_synchronous && may_gather_first(problem, options))
      return plan_check::check_row_gather(problem, ranks);
    return plan_check::check_gather(problem, ranks, options, multiprocessors);
  }
  if (entry.columns_sharded)
    return plan_check::check_scatter({p.m, p.n, p.k, p.type}, ranks, options, multiprocessors);
  int phases = 1;
  if (entry.phases) {
    phases = options.phases > 0 ? options.phases : entry.phases(p, ranks, memory_kind::cuda);
  }
  const device_sum sum{entry.name, p.m, p.n, p.k, p.type, partials_type(p), *entry.sums_to, phases};
  return check_on_gpus(sum, ranks, options, multiprocessors);
}

}  // namespace untax
