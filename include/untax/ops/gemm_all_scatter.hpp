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

/// C = A x B^T, complete at every rank. B is sharded by rows (columns of C) over the ranks. It is
/// planned once and run many times. The pattern is that of arXiv 2511.12500;
/// ops/gemm_all_scatter/README.md draws it.
class gemm_all_scatter {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` if
  /// ranks plan different problems, `out_of_memory`, and `unsupported` for a pattern or option that
  /// the world does not have. In a world of GPUs it also throws `invalid_argument` for fp32, and
  /// for n or k that are not multiples of 8. If `automatic` has to time patterns there, it takes
  /// longer (UNTAX_MEASURE).
  gemm_all_scatter(world& w, const gemm_all_scatter_problem& problem,
                   const operator_options& options = {});
  gemm_all_scatter(gemm_all_scatter&&) noexcept;
  gemm_all_scatter& operator=(gemm_all_scatter&&) noexcept;
  /// Collective. In a world of the host it waits for no peer. In a world of GPUs it waits for the
  /// rank's GPU and for all ranks, unless an exception is leaving.
  ~gemm_all_scatter();

  /// Collective, one epoch. `a`: [m, k], the same at all ranks. `weights`: this rank's shard of B,
  /// of the size `weights_shard()`. `c`: [m, n], written by all ranks, so it is in the symmetric
  /// heap: either `result()`, or an allocation of the caller at the same offset at all ranks. Peers
  /// write into it from the call of `run` to its return, never before or after. With `varying_rows`
  /// the rows of a and c are the rows of this run, and the memory of c has room for m rows. Returns
  /// when `c` is complete and the operands may be changed again. Throws `not_symmetric` if c is not
  /// in this rank's heap, and `invalid_argument`, both before anything is sent; `timeout`,
  /// `peer_lost`, `aborted` if a wait fails; `disagreement` if ranks have different rows or
  /// offsets.
  ///
  /// In a world of GPUs all three are in memory of the rank's GPU, which is the current device of
  /// the calling thread, at multiples of 16 bytes and without gaps between rows. With a stream
  /// `run` is asynchronous: it launches on the stream, allocates and reads back nothing, and can be
  /// captured in a CUDA graph. `world::check` throws the error of a failed wait after the run has
  /// ended. Peers write into c from when the stream comes to this run until it has passed it.
  /// Without a stream it starts after the work in the default stream, and returns as above. Runs of
  /// a world take place in the order of the calls, which is the same at all ranks, also on several
  /// streams and in graphs (docs/design.md, "The order of runs").
  ///
  /// A run on a `c` that is new to it waits for all ranks to compare offsets, but not while its
  /// stream is being captured. If `c` is new at some ranks only, these throw a `timeout` that names
  /// a rank that does not compare.
  ///
  /// If the pattern is bulk_library, also as the choice of `automatic`, graphs of a run have to be
  /// destroyed before the operator: NCCL ends no communicator whose calls are in a graph.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream = {});
  /// As above, into `result()`, or its first rows.
  void run(const const_matrix& a, const const_matrix& weights, stream_ref stream = {}) {
    run(a, weights, rows_of(result(), a.rows), stream);
  }

  /// The operator's own C [m, n], allocated with the operator.
  [[nodiscard]] matrix result() const;

  /// The rows and columns of this rank's shard of B. It has no rows if there are more ranks than
  /// columns.
  [[nodiscard]] static extent weights_shard(const gemm_all_scatter_problem& problem, int world,
                                            int rank);
  /// The plan. In a world of GPUs only `how` was chosen; the other values are those of the options,
  /// and `explain` describes the plan of the kernels.
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// The choices of the plan, and their reasons, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  void make_result();
  void plan_on_device(const operator_options& options);
  [[nodiscard]] matrix rows_of(matrix c, std::int64_t rows) const;
  void agree_on(const matrix& c, stream_ref stream);

  world* world_;
  gemm_all_scatter_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  std::unique_ptr<planned_gemm> planned_;  ///< null if this was moved from
  const void* agreed_ = nullptr;
};

}  // namespace untax
