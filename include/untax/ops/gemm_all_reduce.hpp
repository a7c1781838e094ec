#pragma once

#include <memory>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/world/world.hpp>

namespace untax {

struct gemm_runner;

/// C = sum over ranks of A_r x B_r^T, complete at every rank, where the reduction dimension is
/// sharded over the ranks. The sum is taken in fp32 in rank order: the same bits at every rank, in
/// every run, for any timing. Planned once, run many times. ops/gemm_all_reduce/README.md draws it.
class gemm_all_reduce {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement`,
  /// `out_of_memory`; in a world of GPUs also `invalid_argument` for fp32 and for n or k that are
  /// not multiples of 8, and `unsupported` for a pattern that is not there.
  gemm_all_reduce(world& w, const gemm_all_reduce_problem& problem,
                  const operator_options& options = {});
  gemm_all_reduce(gemm_all_reduce&&) noexcept;
  gemm_all_reduce& operator=(gemm_all_reduce&&) noexcept;
  /// Collective. Waits for no peer in a world of the host.
  ~gemm_all_reduce();

  /// Collective, one epoch. `a`: [m, k_r], `weights`: [n, k_r] where k_r is this rank's share of k
  /// (`k_shard`). `c`: [m, n], the whole sum, written; anywhere in memory, but with two phases what
  /// is not `result()` is copied there at the end. With `varying_rows` a says how many rows this
  /// run has. All of the problem's element type. Throws `invalid_argument` before anything moves;
  /// `timeout`, `peer_lost`, `aborted` when a wait fails.
  ///
  /// In a world of GPUs all three lie in memory of the rank's GPU, as gemm_all_scatter has it. With
  /// a stream `run` is asynchronous and can be captured in a CUDA graph; a wait that failed is
  /// thrown by `world::check` after it has ended. Peers write into `result()` from when the stream
  /// comes to this run until it has passed it.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream = {});
  /// As above, into `result()`, or its first rows.
  void run(const const_matrix& a, const const_matrix& weights, stream_ref stream = {}) {
    run(a, weights, rows_of(result(), a.rows), stream);
  }

  /// The operator's own C [m, n], in the symmetric heap. With two phases peers write into it from
  /// the call of `run` to its return, also where c lies elsewhere; never before or after.
  [[nodiscard]] matrix result() const;

  /// How much of the reduction dimension this rank has.
  [[nodiscard]] static std::int64_t k_shard(const gemm_all_reduce_problem& problem, int world,
                                            int rank);
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// What was chosen, and why.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  [[nodiscard]] matrix rows_of(matrix c, std::int64_t rows) const;

  gemm_all_reduce_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  std::unique_ptr<gemm_runner> runner_;  ///< none: this was moved from
};

}  // namespace untax
