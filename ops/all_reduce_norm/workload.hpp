#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/core/memory_kind.hpp>
#include <untax/ops/all_reduce_norm.hpp>

#include "ops/all_reduce_norm/reference.hpp"
#include "ops/common/operator_trial.hpp"
#include "ops/common/protocol_variant.hpp"

namespace untax {

/// all_reduce_norm as `operator_trial` takes it. Its results are the operator's own.
class norm_operands {
 public:
  using problem_type = all_reduce_norm_problem;
  using options_type = operator_options;
  using operator_type = all_reduce_norm;
  enum : std::size_t { in, residual, weight, x, out, scales };

  norm_operands(const all_reduce_norm_problem& problem, int world, int rank)
      : problem_(problem), world_(world), rank_(rank) {}

  [[nodiscard]] std::vector<trial_operand> operands() const;
  [[nodiscard]] std::unique_ptr<all_reduce_norm> make(world& w,
                                                      const operator_options& options) const;
  static void place_results(const all_reduce_norm& op, operand_set& set);
  void fill(std::uint64_t seed, operand_set& set) const;
  void run(all_reduce_norm& op, operand_set& set, stream_ref stream) const;
  /// The largest of the errors of x, of out and of the scales.
  [[nodiscard]] double relative_error(std::uint64_t seed, operand_set& set) const;

 private:
  all_reduce_norm_problem problem_;
  int world_;
  int rank_;
};

/// One rank's all_reduce_norm with inputs, and results that can be checked against fp64.
using norm_workload = operator_trial<norm_operands>;

/// The operator as a subject of `untax run`.
[[nodiscard]] trial_subject subject_of(const all_reduce_norm_problem& problem,
                                       const operator_options& options,
                                       memory_kind memory = memory_kind::host);

}  // namespace untax
