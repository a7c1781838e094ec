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

/// Rows of C = sum over ranks of A_r x B_r^T, where the reduction dimension is sharded over the
/// ranks. The sum is taken in fp32 in rank order, so the result is the same bit for bit whatever
/// the timing. Planned once, run many times. ops/gemm_reduce_scatter/README.md draws it.
class gemm_reduce_scatter {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement`,
  /// `out_of_memory`; in a world of GPUs also `invalid_argument` for fp32 and for n or k that are
  /// not multiples of 8, and `unsupported` for a pattern that is not there.
  gemm_reduce_scatter(world& w, const gemm_reduce_scatter_problem& problem,
                      const operator_options& options = {});
  gemm_reduce_scatter(gemm_reduce_scatter&&) noexcept;
  gemm_reduce_scatter& operator=(gemm_reduce_scatter&&) noexcept;
  /// Collective. Waits for no peer in a world of the host.
  ~gemm_reduce_scatter();

  /// Collective, one epoch. `a`: [m, k_r], `weights`: [n, k_r] where k_r is this rank's share of k
  /// (`k_shard`). `c`: this rank's rows of the sum (`c_shard`), written; with `varying_rows` a
  /// says how many rows this run has. All of the problem's element type. Throws `invalid_argument`
  /// before anything moves; `timeout`, `peer_lost`, `aborted` when a wait fails.
  ///
  /// In a world of GPUs all three lie in memory of the rank's GPU, as gemm_all_scatter has it. With
  /// a stream `run` is asynchronous and can be captured in a CUDA graph; a wait that failed is
  /// thrown by `world::check` after it has ended.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream = {});

  /// How much of the reduction dimension this rank has.
  [[nodiscard]] static std::int64_t k_shard(const gemm_reduce_scatter_problem& problem, int world,
                                            int rank);
  /// Rows and columns of this rank's part of the result; no rows where there are more ranks than
  /// rows.
  [[nodiscard]] static extent c_shard(const gemm_reduce_scatter_problem& problem, int world,
                                      int rank);
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// What was chosen, and why.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  gemm_reduce_scatter_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  int rank_ = 0;
  std::unique_ptr<gemm_runner> runner_;  ///< none: this was moved from
};

}  // namespace untax
