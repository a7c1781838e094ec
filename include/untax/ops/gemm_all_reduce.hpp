#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/world/world.hpp>

namespace untax {

struct planned_gemm;

/// C [m, n] = sum over ranks of A_r [m, k_r] x B_r [n, k_r]^T, complete at every rank. k is
/// sharded: shards have ceil(k / W) elements rounded up to a multiple of 8. Partial results are
/// sent as elements of `partials`, and added in fp32 in rank order, so the sum is bitwise
/// reproducible and the same at every rank.
struct gemm_all_reduce_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;  ///< the whole reduction dimension, all ranks together
  dtype type = dtype::bf16;
  /// The element type in which partial results are sent: fp32, or `type`; empty stands for `type`.
  std::optional<dtype> partials = std::nullopt;
};

/// C = sum over ranks of A_r x B_r^T, complete at every rank, where k is sharded over the ranks.
/// Partial results are added in fp32 in rank order, so the result has the same bits at every rank,
/// in every run, for any timing. It is planned once and run many times.
/// ops/gemm_all_reduce/README.md draws it.
class gemm_all_reduce {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` if
  /// ranks plan different problems, `out_of_memory`, and `unsupported` for a pattern or option that
  /// the world does not have. In a world of GPUs it also throws `invalid_argument` for fp32, and
  /// for n or k that are not multiples of 8. If `automatic` has to time patterns there, it takes
  /// longer (UNTAX_MEASURE).
  gemm_all_reduce(world& w, const gemm_all_reduce_problem& problem,
                  const operator_options& options = {});
  gemm_all_reduce(gemm_all_reduce&&) noexcept;
  gemm_all_reduce& operator=(gemm_all_reduce&&) noexcept;
  /// Collective. In a world of the host it waits for no peer. In a world of GPUs it waits for the
  /// rank's GPU and for all ranks, unless an exception is leaving.
  ~gemm_all_reduce();

  /// Collective, one epoch. `a`: [m, k_r], `weights`: [n, k_r], where k_r is this rank's shard of k
  /// (`k_shard`). `c`: [m, n], the whole sum, written. It may be anywhere in memory; but with two
  /// phases the sum is computed in `result()`, and copied to `c` at the end if that is another
  /// matrix. With `varying_rows` the rows of a are the rows of this run. All have the problem's
  /// element type. Returns when `c` is complete and the operands may be changed again. Throws
  /// `invalid_argument` before anything is sent; `timeout`, `peer_lost`, `aborted` if a wait fails;
  /// `disagreement` if ranks have different rows.
  ///
  /// In a world of GPUs memory, streams, order of runs, and graphs of bulk_library are as in
  /// `gemm_all_scatter::run`, but `c` need not be symmetric. With a stream `run` is asynchronous
  /// and can be captured in a CUDA graph. `world::check` throws the error of a failed wait after
  /// the run has ended. Peers write into `result()` from when the stream comes to this run until it
  /// has passed it.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream = {});
  /// As above, into `result()`, or its first rows.
  void run(const const_matrix& a, const const_matrix& weights, stream_ref stream = {}) {
    run(a, weights, rows_of(result(), a.rows), stream);
  }

  /// The operator's own C [m, n], in the symmetric heap. With two phases peers write into it from
  /// the call of `run` to its return, also if c is another matrix; never before or after.
  [[nodiscard]] matrix result() const;

  /// The number of elements of k that this rank has.
  [[nodiscard]] static std::int64_t k_shard(const gemm_all_reduce_problem& problem, int world,
                                            int rank);
  /// The plan. In a world of GPUs only `how` and `phases` were chosen; the other values are those
  /// of the options.
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// The choices of the plan, and their reasons, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  [[nodiscard]] matrix rows_of(matrix c, std::int64_t rows) const;

  gemm_all_reduce_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  std::unique_ptr<planned_gemm> planned_;  ///< null if this was moved from
};

}  // namespace untax
