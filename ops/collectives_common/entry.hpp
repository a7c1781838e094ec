#pragma once

#include <memory>
#include <string>

#include <untax/tile/program.hpp>

#include "ops/collectives_common/planning.hpp"
#include "ops/collectives_common/workload.hpp"

namespace untax {

/// Runs the class of any collective through one interface.
template <class Operator>
class collective_runner final : public runnable_collective {
 public:
  template <class Problem>
  collective_runner(world& w, const Problem& problem, const collective_options& options)
      : op_(w, problem, options) {}

  void run(const const_array_view& in, const array_view& out, stream_ref stream) override {
    op_.run(in, out, stream);
  }
  [[nodiscard]] const collective_plan& plan() const override { return op_.plan(); }
  [[nodiscard]] const std::string& explain() const override { return op_.explain(); }

 private:
  Operator op_;
};

/// The part of an entry that follows from the class, and from `problem_of(problem, world)`, which
/// makes the collective's own problem from one for any. Uses its `need_of` and `with_protocol_for`.
template <class Operator, class ProblemOf>
[[nodiscard]] collective_entry entry_of(std::string name, ProblemOf problem_of) {
  collective_entry entry;
  entry.name = std::move(name);
  entry.make = [problem_of](world& w, const collective_problem& p,
                            const collective_options& o) -> std::unique_ptr<runnable_collective> {
    return std::make_unique<collective_runner<Operator>>(w, problem_of(p, w.size()), o);
  };
  entry.plan = [problem_of](const collective_problem& p, int world, int rank,
                            const collective_options& o) {
    return plan_collective(world, rank, need_of(problem_of(p, world), world), o).plan;
  };
  entry.device_plan = [problem_of](const collective_problem& p, int world, int rank,
                                   const collective_options& o) {
    return plan_collective(world, rank, need_of(problem_of(p, world), world), o, memory_kind::cuda)
        .plan;
  };
  entry.program_of = [problem_of](const collective_problem& p, const collective_plan& plan) {
    return with_protocol_for(problem_of(p, plan.world), plan,
                             [](auto protocol) { return program(std::move(protocol)); });
  };
  const auto in_count = [problem_of](const collective_problem& p, int world, int rank) {
    return Operator::in_count(problem_of(p, world), world, rank);
  };
  const auto out_count = [problem_of](const collective_problem& p, int world, int rank) {
    return Operator::out_count(problem_of(p, world), world, rank);
  };
  entry.in_count = in_count;
  entry.out_count = out_count;
  entry.schedule = [=](const collective_problem& p, const collective_plan& plan,
                       std::uint64_t epochs) {
    const schedule::operand_extents operands{.a = {1, in_count(p, plan.world, plan.rank)},
                                             .b = {},
                                             .c = {1, out_count(p, plan.world, plan.rank)}};
    const auto own = problem_of(p, plan.world);
    return with_protocol_for(own, plan, [&](auto protocol) {
      return schedule::rank_plan(program(std::move(protocol)), operands, epochs);
    });
  };
  return entry;
}

}  // namespace untax
