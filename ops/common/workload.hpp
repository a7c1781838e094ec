#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <untax/core/matrix.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/options.hpp>
#include <untax/world/world.hpp>

#include "ops/common/operator_entry.hpp"
#include "ops/common/operator_trial.hpp"
#include "ops/common/protocol_variant.hpp"

namespace untax {

class device_reference;

/// The operands of a GEMM operator at a rank, as `operator_trial` takes them. In a world of GPUs
/// they are made and checked there, on the current device.
class gemm_shards {
 public:
  using problem_type = gemm_problem;
  using options_type = operator_options;
  using operator_type = runnable;
  enum : std::size_t { a, weights, c };

  /// `entry` has to outlive it.
  gemm_shards(const operator_entry& entry, const gemm_problem& problem, int world, int rank,
              memory_kind memory = memory_kind::host);
  gemm_shards(gemm_shards&&) noexcept;
  gemm_shards& operator=(gemm_shards&&) = delete;
  ~gemm_shards();

  [[nodiscard]] std::vector<trial_operand> operands() const;
  [[nodiscard]] std::unique_ptr<runnable> make(world& w, const operator_options& options) const {
    return entry_->make(w, problem_, options);
  }
  static void place_results(const runnable& op, operand_set& set);
  void fill(std::uint64_t seed, operand_set& set) const;
  /// As `fill`, in a world of GPUs, asynchronously on a stream.
  void fill_on(stream_ref stream, std::uint64_t seed, operand_set& set) const;
  void run(runnable& op, operand_set& set, stream_ref stream) const;
  /// || reference || counts as at least the norm expected of N(0, 1) inputs.
  [[nodiscard]] double relative_error(std::uint64_t seed, operand_set& set) const;
  [[nodiscard]] matrix elements(const operand_memory& memory) const noexcept {
    return memory.elements(problem_.type);
  }

 private:
  const operator_entry* entry_;
  gemm_problem problem_;
  gemm_share share_;
  int world_;
  std::unique_ptr<device_reference> right_;  ///< in a world of GPUs
};

/// One rank's GEMM operator with inputs, and a result that can be checked: on the host against
/// fp64, on GPUs against fp32.
class workload final : public operator_trial<gemm_shards> {
 public:
  /// Collective. `entry` has to outlive it.
  workload(world& w, const operator_entry& entry, const gemm_problem& problem,
           const operator_options& options, std::uint64_t seed)
      : operator_trial(w, gemm_shards(entry, problem, w.size(), w.rank(), w.memory()), options,
                       seed) {}

  /// New inputs, asynchronously on a stream of the rank's GPU.
  void refresh_on(stream_ref stream, std::uint64_t seed) {
    seed_ = seed;
    work_.fill_on(stream, seed, operands_);
  }
  [[nodiscard]] matrix a() const { return work_.elements(operands_[gemm_shards::a]); }
  [[nodiscard]] matrix weights() const { return work_.elements(operands_[gemm_shards::weights]); }
  [[nodiscard]] matrix result() const { return work_.elements(operands_[gemm_shards::c]); }
};

/// The largest relative error of a correct result: rounding of the result, and of partial results,
/// if the operator sends some.
[[nodiscard]] double tolerance_of(const operator_entry& entry,
                                  const gemm_problem& problem) noexcept;

/// The largest error of an element of a correct result over its own size or, if that is larger, the
/// root mean square of its row.
[[nodiscard]] double element_share_of(const operator_entry& entry, const gemm_problem& problem,
                                      int ranks) noexcept;

/// An upper bound on the bytes of symmetric heap per rank for one operator on this problem, in any
/// pattern; `phases` as asked for in the options.
[[nodiscard]] std::size_t heap_for(const gemm_problem& problem, int world, int phases = 0) noexcept;

/// As `heap_for`, in a world of GPUs, where partial results lie in tiles of the GEMM.
[[nodiscard]] std::size_t device_heap_for(const operator_entry& entry, const gemm_problem& problem,
                                          int world, int phases = 0) noexcept;

/// Memory that a rank takes for its part of A, B and C.
[[nodiscard]] memory_need operands_need(const operator_entry& entry, const gemm_problem& problem,
                                        int world, int rank);
/// The further memory of a rank for one operator on the host: its part of `heaps`, and the memory
/// of its workers. Problems beyond any machine are left out.
[[nodiscard]] memory_need operator_need(const operator_entry& entry, const gemm_problem& problem,
                                        const operator_options& options, int world, int rank);

/// A subject of `untax run` and of the benchmarks: an operator on a problem, in worlds whose heaps
/// lie in `memory`. `entry` has to outlive it.
[[nodiscard]] trial_subject subject_of(const operator_entry& entry, const gemm_problem& problem,
                                       const operator_options& options,
                                       memory_kind memory = memory_kind::host);

/// Every pattern (but `automatic`, which is one of the others), gather axis and direction that a
/// GEMM operator has.
///
/// Schedules are proved for a single element, shapes that no number of ranks divides, and shapes
/// with fewer rows or columns than ranks, each cut into one tile, several, and many, for one worker
/// and for several. `entry` has to outlive the variants.
[[nodiscard]] std::vector<protocol_variant> variants_of(const operator_entry& entry);

}  // namespace untax
