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

/// C [m, n] = sum over ranks of A_r [m, k_r] x B_r [n, k_r]^T. k is sharded: shards have ceil(k /
/// W) elements rounded up to a multiple of 8. Rank r ends with its ceil(m / W) rows of the sum.
/// Partial results are sent as elements of `partials`, and added in fp32 in rank order, so the sum
/// is bitwise reproducible.
struct gemm_reduce_scatter_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;  ///< the whole reduction dimension, all ranks together
  dtype type = dtype::bf16;
  /// The element type in which partial results are sent: fp32, or `type`; empty stands for `type`.
  std::optional<dtype> partials = std::nullopt;
};

/// Rows of C = sum over ranks of A_r x B_r^T, where k is sharded over the ranks. Partial results
/// are added in fp32 in rank order, so the result has the same bits for any timing. It is planned
/// once and run many times. ops/gemm_reduce_scatter/README.md draws it.
class gemm_reduce_scatter {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` if
  /// ranks plan different problems, `out_of_memory`, and `unsupported` for a pattern or option that
  /// the world does not have. In a world of GPUs it also throws `invalid_argument` for fp32, and
  /// for n or k that are not multiples of 8. If `automatic` has to time patterns there, it takes
  /// longer (UNTAX_MEASURE).
  gemm_reduce_scatter(world& w, const gemm_reduce_scatter_problem& problem,
                      const operator_options& options = {});
  gemm_reduce_scatter(gemm_reduce_scatter&&) noexcept;
  gemm_reduce_scatter& operator=(gemm_reduce_scatter&&) noexcept;
  /// Collective. In a world of the host it waits for no peer. In a world of GPUs it waits for the
  /// rank's GPU and for all ranks, unless an exception is leaving.
  ~gemm_reduce_scatter();

  /// Collective, one epoch. `a`: [m, k_r], `weights`: [n, k_r], where k_r is this rank's shard of k
  /// (`k_shard`). `c`: this rank's rows of the sum (`c_shard`), written. With `varying_rows` the
  /// rows of a are the rows of this run. All have the problem's element type. Returns when `c` is
  /// complete and the operands may be changed again. Throws `invalid_argument` before anything is
  /// sent; `timeout`, `peer_lost`, `aborted` if a wait fails; `disagreement` if ranks have
  /// different rows.
  ///
  /// In a world of GPUs memory, streams, order of runs, and graphs of bulk_library are as in
  /// `gemm_all_scatter::run`, but `c` need not be symmetric. With a stream `run` is asynchronous
  /// and can be captured in a CUDA graph. `world::check` throws the error of a failed wait after
  /// the run has ended.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream = {});

  /// The number of elements of k that this rank has.
  [[nodiscard]] static std::int64_t k_shard(const gemm_reduce_scatter_problem& problem, int world,
                                            int rank);
  /// The rows and columns of this rank's part of the result. It has no rows if there are more ranks
  /// than rows.
  [[nodiscard]] static extent c_shard(const gemm_reduce_scatter_problem& problem, int world,
                                      int rank);
  /// The plan. In a world of GPUs only `how` was chosen; the other values are those of the options.
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// The choices of the plan, and their reasons, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  gemm_reduce_scatter_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  int rank_ = 0;
  std::unique_ptr<planned_gemm> planned_;  ///< null if this was moved from
};

}  // namespace untax
