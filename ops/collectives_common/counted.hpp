#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <untax/ops/collective_problems.hpp>
#include <untax/tile/row_program.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/collectives/collective_runner.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/common/row_table.hpp"

namespace untax {

/// The plans of a collective for every count up to its capacity.
class count_plans : public row_table<collective_plan> {
 public:
  using row_table::row_table;
};

/// The plans, programs and kernels of a collective with a capacity.
struct counted_programs {
  std::shared_ptr<const count_plans> plans;
  row_program programs;
  /// The kernels of a run of `count` elements by one of the plans. Only called in a world of GPUs.
  std::function<gpu::collective_kernel(std::int64_t count, const collective_plan&)> kernels;
};

/// A collective with a capacity in a world of GPUs: for each end of the table a runner with
/// counters of its own, and with rooms of its own or shared with the others. A run uses the first
/// runner that was made for at least as many elements.
class counted_runners {
 public:
  /// Collective, as the construction of each runner.
  counted_runners(world& w, const std::string& name, const counted_programs& counted)
      : plans_(counted.plans),
        kernels_(counted.kernels),
        rooms_(gpu::make_room_pool(w, name)),
        table_(plans_->ends(), [&](std::int64_t end) {
          return std::make_unique<gpu::collective_runner>(w, name, kernels_(end, plans_->at(end)),
                                                          rooms_.get());
        }) {}

  /// The runner for runs of `count` elements, at least 1.
  [[nodiscard]] gpu::collective_runner& for_count(std::int64_t count) {
    gpu::collective_runner& runner = *table_.at(count);
    if (count != count_)
      runner.set_argument(std::move(kernels_(count, plans_->at(count)).first_argument));
    count_ = count;
    return runner;
  }
  [[nodiscard]] bool captures(stream_ref stream) const {
    return table_.at(table_.capacity())->captures(stream);
  }

 private:
  std::shared_ptr<const count_plans> plans_;
  std::function<gpu::collective_kernel(std::int64_t, const collective_plan&)> kernels_;
  std::shared_ptr<gpu::room_pool> rooms_;
  row_table<std::unique_ptr<gpu::collective_runner>> table_;
  std::int64_t count_ = -1;
};

/// Makes plans for every count up to that of the problem, one for each of `ends`. A collective
/// whose count varies has a `need_of` and a `with_protocol_for` for a problem.
template <class Problem>
[[nodiscard]] counted_programs counted(const world& w, const Problem& problem,
                                       const collective_options& options,
                                       gpu::collective_kernel (*kernels_of)(const Problem&,
                                                                            const collective_plan&),
                                       std::vector<std::int64_t> ends) {
  const auto with = [problem](std::int64_t count) {
    Problem p = problem;
    p.count = count;
    return p;
  };
  // The most uses of a room: one for each chunk of the result, and one more.
  std::uint64_t most_uses = 1;
  const auto plans = std::make_shared<const count_plans>(std::move(ends), [&](std::int64_t count) {
    const collective_need need = need_of(with(count), w.size());
    const collective_plan plan =
        plan_collective(w.size(), w.rank(), need, options, w.memory(), w.ranks_per_gpu()).plan;
    const std::int64_t chunks = ceil_div(std::max(need.total, need.largest_one), plan.chunk);
    most_uses = std::max(most_uses, static_cast<std::uint64_t>(chunks) + 1);
    return plan;
  });
  return {plans,
          row_program(plans->ends(), most_uses,
                      [plans, with](std::int64_t count, auto&& use) {
                        const Problem p = with(count);
                        with_protocol_for(p, plans->at(count), use);
                      }),
          [with, kernels_of](std::int64_t count, const collective_plan& plan) {
            return kernels_of(with(count), plan);
          }};
}
template <class Problem>
[[nodiscard]] counted_programs counted(
    const world& w, const Problem& problem, const collective_options& options,
    gpu::collective_kernel (*kernels_of)(const Problem&, const collective_plan&)) {
  return counted(w, problem, options, kernels_of, number_ends(problem.count));
}

}  // namespace untax
