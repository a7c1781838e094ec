#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <untax/core/matrix.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/program.hpp>
#include <untax/tile/shard.hpp>
#include <untax/world/world.hpp>

#include "ops/common/operator_trial.hpp"
#include "ops/common/protocol_variant.hpp"
#include "ops/common/reduce_target.hpp"

namespace untax {

/// A problem for any of the GEMM operators; each uses the fields it knows.
struct gemm_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::f32;
  gather_axis gather = gather_axis::rows;
  std::optional<dtype> partials = std::nullopt;  ///< empty: as `type`
};

/// Which parts of the whole A, B and C one rank holds. The whole problem is C = A x B^T in all
/// operators; they differ in how it is sharded.
struct gemm_share {
  range a_rows, a_cols;
  range b_rows, b_cols;
  range c_rows, c_cols;
  std::uint64_t b_of_rank = 0;  ///< ranks with different values have different B
};

/// An operator behind an interface that is the same for all.
class runnable {
 public:
  runnable() = default;
  runnable(const runnable&) = delete;
  runnable& operator=(const runnable&) = delete;
  virtual ~runnable() = default;

  /// `stream` is only for worlds of GPUs.
  virtual void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
                   stream_ref stream) = 0;
  [[nodiscard]] virtual const protocol_plan& plan() const = 0;
  [[nodiscard]] virtual const std::string& explain() const = 0;
  /// Where the result has to lie; null data if anywhere.
  [[nodiscard]] virtual matrix result() const { return {}; }
};

struct device_findings;

/// The description of an operator for the command, the benchmarks and the tests. An operator adds
/// itself to `operators()`.
struct operator_entry {
  std::string name;
  std::string summary;
  bool gathers = false;  ///< it has a gather axis, and can pull
  /// Where sums over ranks go, if there are any; partial results have an element type.
  std::optional<reduce_target> sums_to = std::nullopt;
  bool columns_sharded = false;  ///< n counts the columns of all ranks; each multiplies its part
  bool on_gpus = false;          ///< it is there in worlds of GPUs, too
  bool result_in_heap = false;   ///< the operator owns its result, for peers to write
  bool copied = false;           ///< its protocol has a program for the copy engines of GPUs
  /// Bitwise reproducible for any timing.
  bool reproducible = false;

  std::function<std::unique_ptr<runnable>(world&, const gemm_problem&, const operator_options&)>
      make;
  std::function<gemm_share(const gemm_problem&, int world, int rank)> share;
  std::function<program(const gemm_problem&, const protocol_plan&)> protocol;
  /// The least bytes that a rank sends.
  std::function<double(const gemm_problem&, int world, int rank)> bytes_sent;
  /// The findings about the plans of ranks on GPUs (device_schedule.hpp), for a pattern of own
  /// kernels. Empty where there are none.
  std::function<device_findings(const gemm_problem&, int ranks, const operator_options&,
                                int multiprocessors)>
      check_on_gpus = nullptr;
  /// How many phases untax chooses, where there are one or two. Empty where there is no choice.
  std::function<int(const gemm_problem&, int world, memory_kind)> phases = nullptr;
};

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
  /// The same in a world of GPUs, asynchronously on a stream.
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

/// The same in a world of GPUs, where partial results lie in tiles of the GEMM.
[[nodiscard]] std::size_t device_heap_for(const operator_entry& entry, const gemm_problem& problem,
                                          int world, int phases = 0) noexcept;

/// Memory that a rank takes for its part of A, B and C.
[[nodiscard]] memory_need operands_need(const operator_entry& entry, const gemm_problem& problem,
                                        int world, int rank);
/// The further memory of a rank for one operator on the host: its part of `heaps`, and what its
/// workers keep. Problems beyond any machine are left out.
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
