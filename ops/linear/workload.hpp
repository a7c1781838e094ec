#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <untax/ops/linear.hpp>

#include "ops/common/lone_trial.hpp"

namespace untax {

/// linear as `operator_trial` takes it: random inputs whose sums are of N(0, 1), where functions
/// are curved. There is a bias if there is a function, so that `none` is the product alone.
class linear_work {
 public:
  using problem_type = linear_problem;
  using options_type = linear_options;
  using operator_type = lone_operator<linear>;
  enum : std::size_t { x, weights, bias, out };

  linear_work(const linear_problem& problem, int world, int rank);

  [[nodiscard]] std::vector<trial_operand> operands() const;
  [[nodiscard]] std::unique_ptr<lone_operator<linear>> make(world& w,
                                                            const linear_options& options) const;
  void fill(std::uint64_t seed, operand_set& set) const;
  void run(lone_operator<linear>& op, operand_set& set, stream_ref stream) const;
  [[nodiscard]] double relative_error(std::uint64_t seed, operand_set& set) const;

 private:
  linear_problem problem_;
  int world_;
  int rank_;
};

/// One rank's linear with inputs, and a result that can be checked against fp64.
using linear_workload = operator_trial<linear_work>;

}  // namespace untax
