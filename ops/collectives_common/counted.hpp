#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include <untax/ops/collective_problems.hpp>
#include <untax/tile/row_program.hpp>
#include <untax/world/world.hpp>

#include "ops/collectives_common/planning.hpp"
#include "ops/common/row_table.hpp"

namespace untax {

/// The plans of a collective for every count up to its capacity.
class count_plans : public row_table<collective_plan> {
 public:
  using row_table::row_table;
};

/// What a collective with a capacity is made of.
struct counted_programs {
  std::shared_ptr<const count_plans> plans;
  row_program programs;
};

/// Plans for every count up to that of the problem. Where counts vary there is a `need_of` and a
/// `with_protocol_for` for a problem.
template <class Problem>
[[nodiscard]] counted_programs counted(const world& w, const Problem& problem,
                                       const collective_options& options) {
  const auto with = [problem](std::int64_t count) {
    Problem p = problem;
    p.count = count;
    return p;
  };
  // At most one for each chunk of the result, and one that is begun.
  std::uint64_t most_uses = 1;
  const auto plans = std::make_shared<const count_plans>(problem.count, [&](std::int64_t count) {
    const collective_need need = need_of(with(count), w.size());
    const collective_plan plan =
        plan_collective(w.size(), w.rank(), need, options, w.memory(), w.ranks_per_gpu()).plan;
    const std::int64_t chunks = ceil_div(std::max(need.total, need.largest_one), plan.chunk);
    most_uses = std::max(most_uses, static_cast<std::uint64_t>(chunks) + 1);
    return plan;
  });
  return {plans,
          row_program(plans->ends(), most_uses, [plans, with](std::int64_t count, auto&& use) {
            const Problem p = with(count);
            with_protocol_for(p, plans->at(count), use);
          })};
}

}  // namespace untax
