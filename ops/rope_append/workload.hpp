#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/ops/rope_append.hpp>

#include "ops/common/operator_trial.hpp"

namespace untax {

/// The operator with a plan as trials expect one: it is a single kernel.
class rope_append_trial_operator {
 public:
  struct single_kernel {
    pattern how = pattern::fused_sequential;
  };

  rope_append_trial_operator(world& w, const rope_append_problem& problem,
                             const rope_append_options& options)
      : op_(w, problem, options) {}

  [[nodiscard]] rope_append& get() noexcept { return op_; }
  [[nodiscard]] single_kernel plan() const noexcept { return {}; }
  [[nodiscard]] const std::string& explain() const noexcept { return op_.explain(); }

 private:
  rope_append op_;
};

/// rope_append as `operator_trial` takes it: random inputs, and tokens at places that differ.
class rope_append_work {
 public:
  using problem_type = rope_append_problem;
  using options_type = rope_append_options;
  using operator_type = rope_append_trial_operator;
  enum : std::size_t {
    qkv,
    bias,
    q_norm,
    k_norm,
    rotations,
    position,
    sequence,
    page_table,
    keys,
    values,
    q
  };

  rope_append_work(const rope_append_problem& problem, int world, int rank);

  [[nodiscard]] std::vector<trial_operand> operands() const;
  [[nodiscard]] std::unique_ptr<rope_append_trial_operator> make(
      world& w, const rope_append_options& options) const;
  void fill(std::uint64_t seed, operand_set& set) const;
  void run(rope_append_trial_operator& op, operand_set& set, stream_ref stream) const;
  /// The larger of the errors of q and of the rows of the cache; infinity if other rows of it were
  /// written.
  [[nodiscard]] double relative_error(std::uint64_t seed, operand_set& set) const;

 private:
  rope_append_problem problem_;
  int world_;
  int rank_;
};

/// One rank's rope_append with inputs, and results that can be checked against fp64.
using rope_append_workload = operator_trial<rope_append_work>;

}  // namespace untax
