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

struct planned_gemm;

/// C_r = gather(A) x B_r^T. Every rank has a shard of A (rows, or columns with `gather = k`) and
/// its own weights. It is planned once and run many times. The algorithm is that of arXiv
/// 2511.02168; ops/all_gather_gemm/README.md draws it.
class all_gather_gemm {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` if
  /// ranks plan different problems, `out_of_memory`, and `unsupported` for a pattern or option that
  /// the world does not have. In a world of GPUs it also throws `invalid_argument` for fp32, and
  /// for n or k that are not multiples of 8. If `automatic` has to time patterns there, it takes
  /// longer (UNTAX_MEASURE).
  all_gather_gemm(world& w, const all_gather_gemm_problem& problem,
                  const operator_options& options = {});
  all_gather_gemm(all_gather_gemm&&) noexcept;
  all_gather_gemm& operator=(all_gather_gemm&&) noexcept;
  /// Collective. In a world of the host it waits for no peer. In a world of GPUs it waits for the
  /// rank's GPU and for all ranks, unless an exception is leaving.
  ~all_gather_gemm();

  /// Collective, one epoch. `a`: this rank's shard, of the size `a_shard()`. `weights`: [n, k].
  /// `c`: [m, n], written; with `varying_rows` its rows are the rows of this run. All have the
  /// problem's element type. Returns when `c` is complete and the operands may be changed again.
  /// Throws `invalid_argument` before anything is sent; `timeout`, `peer_lost`, `aborted` if a wait
  /// fails; `disagreement` if ranks have different rows.
  ///
  /// In a world of GPUs all three are in memory of the rank's GPU, which is the current device of
  /// the calling thread, at multiples of 16 bytes and without gaps between rows. With a stream
  /// `run` is asynchronous: it launches on the stream, allocates and reads back nothing, and can be
  /// captured in a CUDA graph. `world::check` throws the error of a failed wait after the run has
  /// ended. Without a stream it starts after the work in the default stream, and returns as above.
  /// Runs of a world take place in the order of the calls, which is the same at all ranks, also on
  /// several streams and in graphs (docs/design.md, "The order of runs").
  ///
  /// If the pattern is bulk_library, also as the choice of `automatic`, graphs of a run have to be
  /// destroyed before the operator: NCCL ends no communicator whose calls are in a graph.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream = {});

  /// The rows and columns of this rank's shard of A. Either may be 0 if there are more ranks than
  /// rows.
  [[nodiscard]] static extent a_shard(const all_gather_gemm_problem& problem, int world, int rank);
  /// The plan. In a world of GPUs only `how` was chosen; the other values are those of the options,
  /// and `explain` describes the plan of the kernels.
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// The choices of the plan, and their reasons, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  void plan_on_device(const operator_options& options);

  all_gather_gemm_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  int rank_ = 0;
  std::unique_ptr<planned_gemm> planned_;  ///< null if this was moved from
};

}  // namespace untax
