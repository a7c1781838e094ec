#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/core/array_view.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "ops/collectives_common/entry.hpp"
#include "ops/common/operator_trial.hpp"
#include "ops/common/protocol_variant.hpp"

namespace untax {

/// The operands of a collective at a rank, as `operator_trial` takes them: elements from N(0, 1).
/// If peers touch them, they lie in symmetric memory. Values are made and results checked on the
/// host.
class collective_operands {
 public:
  using problem_type = collective_problem;
  using options_type = collective_options;
  using operator_type = runnable_collective;
  enum : std::size_t { in, out };

  /// `entry` has to outlive it.
  collective_operands(const collective_entry& entry, const collective_problem& problem, bool direct,
                      int world, int rank)
      : entry_(&entry), problem_(problem), direct_(direct), world_(world), rank_(rank) {}

  [[nodiscard]] std::vector<trial_operand> operands() const;
  [[nodiscard]] std::unique_ptr<runnable_collective> make(world& w,
                                                          const collective_options& options) const {
    return entry_->make(w, problem_, options);
  }
  void fill(std::uint64_t seed, operand_set& set) const;
  void run(runnable_collective& op, operand_set& set, stream_ref stream) const {
    op.run(as_const(elements(set[in])), elements(set[out]), stream);
  }
  /// The error of sums is relative to at least the norm expected of N(0, 1) inputs.
  [[nodiscard]] double relative_error(std::uint64_t seed, operand_set& set) const;
  /// How many elements differ by a bit from the contributions combined in fp32 in rank order and
  /// rounded once.
  [[nodiscard]] std::int64_t wrong_bits(std::uint64_t seed, operand_set& set) const;

 private:
  [[nodiscard]] array_view elements(const operand_memory& memory) const {
    return {memory.data(), problem_.type, memory.shape().cols};
  }
  /// The result in fp32.
  [[nodiscard]] std::vector<float> result(operand_set& set) const;
  /// The expected element `i` of the result, computed as T, not rounded.
  template <class T>
  [[nodiscard]] T reference(std::uint64_t seed, std::int64_t i) const;

  const collective_entry* entry_;
  collective_problem problem_;
  bool direct_;
  int world_;
  int rank_;
};

/// One rank's collective with inputs, and a result that can be checked against fp64.
class collective_workload final : public operator_trial<collective_operands> {
 public:
  /// Collective, as the destructor. `entry` has to outlive it.
  collective_workload(world& w, const collective_entry& entry, const collective_problem& problem,
                      const collective_options& options, std::uint64_t seed)
      : operator_trial(w, collective_operands(entry, problem, options.direct, w.size(), w.rank()),
                       options, seed) {}

  /// As `collective_operands::wrong_bits`.
  [[nodiscard]] std::int64_t wrong_bits() { return work_.wrong_bits(seed_, operands_); }
};

/// "all_reduce, count 1000, bf16, sum".
[[nodiscard]] std::string describe(const collective_entry& entry,
                                   const collective_problem& problem);

/// A subject of `untax run`, for worlds with heaps in `memory`. `entry` has to outlive it.
[[nodiscard]] trial_subject subject_of(const collective_entry& entry,
                                       const collective_problem& problem,
                                       const collective_options& options,
                                       memory_kind memory = memory_kind::host);

/// Every pattern of a collective, in one phase and in two and with equal and unequal parts where it
/// has these. `entry` has to outlive the variants.
[[nodiscard]] std::vector<protocol_variant> variants_of(const collective_entry& entry);

}  // namespace untax
