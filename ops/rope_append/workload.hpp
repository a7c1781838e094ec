#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <untax/ops/rope_append.hpp>

#include "ops/common/lone_trial.hpp"

namespace untax {

/// rope_append as `operator_trial` takes it: random inputs, and tokens at different places.
class rope_append_work {
 public:
  using problem_type = rope_append_problem;
  using options_type = rope_append_options;
  using operator_type = lone_operator<rope_append>;
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
  [[nodiscard]] std::unique_ptr<lone_operator<rope_append>> make(
      world& w, const rope_append_options& options) const;
  void fill(std::uint64_t seed, operand_set& set) const;
  void run(lone_operator<rope_append>& op, operand_set& set, stream_ref stream) const;
  /// The larger of the errors of q and of the rows of the cache; infinity if other rows of the
  /// cache were written.
  [[nodiscard]] double relative_error(std::uint64_t seed, operand_set& set) const;

 private:
  rope_append_problem problem_;
  int world_;
  int rank_;
};

/// One rank's rope_append with inputs, and results that can be checked against fp64.
using rope_append_workload = operator_trial<rope_append_work>;

}  // namespace untax
