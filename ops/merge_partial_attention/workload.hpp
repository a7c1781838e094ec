#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/ops/merge_partial_attention.hpp>

#include "ops/common/operator_trial.hpp"
#include "ops/common/protocol_variant.hpp"

namespace untax {

/// merge_partial_attention as `operator_trial` takes it: random inputs, of which some are empty.
class merge_operands {
 public:
  using problem_type = merge_partial_attention_problem;
  using options_type = merge_partial_attention_options;
  using operator_type = merge_partial_attention;
  enum : std::size_t { partial_o, partial_lse, out, lse };

  merge_operands(const merge_partial_attention_problem& problem, int world, int rank);

  [[nodiscard]] std::vector<trial_operand> operands() const;
  [[nodiscard]] std::unique_ptr<merge_partial_attention> make(
      world& w, const merge_partial_attention_options& options) const;
  void fill(std::uint64_t seed, operand_set& set) const;
  void run(merge_partial_attention& op, operand_set& set, stream_ref stream) const;
  /// The larger of the errors of the result and of its logarithms, of the tokens of the last run.
  [[nodiscard]] double relative_error(std::uint64_t seed, operand_set& set) const;

  std::int64_t tokens;  ///< of the next run, where they vary

 private:
  /// A rank's inputs.
  void fill(std::uint64_t seed, int rank, const matrix& elements, float* log_sums) const;

  merge_partial_attention_problem problem_;
  int world_;
  int rank_;
  range heads_;
};

/// One rank's merge_partial_attention with inputs, and a result that can be checked against fp64.
class merge_workload final : public operator_trial<merge_operands> {
 public:
  using operator_trial::operator_trial;
  using operator_trial::run;
  /// Runs with `tokens` tokens, up to those of the problem, if they vary. With a stream of a GPU it
  /// does not wait.
  void run(std::int64_t tokens, stream_ref stream = {}) {
    work_.tokens = tokens;
    launch(stream);
  }
};

/// The operator as a subject of `untax run`, in worlds with such memory.
[[nodiscard]] trial_subject subject_of(const merge_partial_attention_problem& problem,
                                       const merge_partial_attention_options& options,
                                       memory_kind memory);

/// The largest relative error of a correct result.
[[nodiscard]] double tolerance_of(const merge_partial_attention_problem& problem) noexcept;

}  // namespace untax
