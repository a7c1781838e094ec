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

/// C_r = gather(A) x B_r^T: every rank holds a shard of A (rows, or columns with `gather = k`) and
/// its own weights. Planned once, run many times. The algorithm is that of arXiv 2511.02168;
/// ops/all_gather_gemm/README.md draws it.
class all_gather_gemm {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` when
  /// ranks plan different things, `out_of_memory`; in a world of GPUs also `invalid_argument` for
  /// fp32 and for n or k that are not multiples of 8, and `unsupported` for a pattern that is not
  /// there. Where `automatic` has to time patterns there, it takes some tenths of a second
  /// (UNTAX_MEASURE).
  all_gather_gemm(world& w, const all_gather_gemm_problem& problem,
                  const operator_options& options = {});
  all_gather_gemm(all_gather_gemm&&) noexcept;
  all_gather_gemm& operator=(all_gather_gemm&&) noexcept;
  /// Collective. Waits for no peer in a world of the host.
  ~all_gather_gemm();

  /// Collective, one epoch. `a`: this rank's shard, `a_shard()` says its size. `weights`: [n, k].
  /// `c`: [m, n], written; with `varying_rows` its rows say how many this run has. All of the
  /// problem's element type. Returns when `c` is complete and the operands are the caller's again.
  /// Throws `invalid_argument` before anything moves; `timeout`, `peer_lost`, `aborted` when a wait
  /// fails.
  ///
  /// In a world of GPUs all three lie in memory of the rank's GPU, which is the current one of the
  /// calling thread, at multiples of 16 bytes and without gaps between rows. With a stream `run` is
  /// asynchronous: it launches on the stream, allocates and reads back nothing, and can be captured
  /// in a CUDA graph; a wait that failed is thrown by `world::check` after it has ended. Without
  /// one it returns as above. The runs of one operator are in order: on one stream, or made so by
  /// events. So are those of different operators of a world, in the same order at all ranks: the
  /// kernels of one may need all multiprocessors, and wait for peers.
  ///
  /// Where the pattern is bulk_library, also as what `automatic` stands for, graphs of a run have
  /// to be destroyed before the operator: NCCL ends no communicator that a graph has calls of.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream = {});

  /// Rows and columns of this rank's shard of A; either may be 0 where there are more ranks than
  /// rows.
  [[nodiscard]] static extent a_shard(const all_gather_gemm_problem& problem, int world, int rank);
  /// In a world of GPUs only `how` was chosen; the rest is what was asked for, and `explain` says
  /// what came of it.
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// What was chosen, and why.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  void plan_on_device(const operator_options& options);

  all_gather_gemm_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  int rank_ = 0;
  std::unique_ptr<gemm_runner> runner_;  ///< none: this was moved from
};

}  // namespace untax
