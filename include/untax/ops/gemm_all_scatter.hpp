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

/// C = A x B^T, complete at every rank, where B is sharded by rows (columns of C) to the ranks.
/// Planned once, run many times. The pattern is that of arXiv 2511.12500;
/// ops/gemm_all_scatter/README.md draws it.
class gemm_all_scatter {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement`,
  /// `out_of_memory`; in a world of GPUs also `invalid_argument` for fp32 and for n or k that are
  /// not multiples of 8, and `unsupported` for a pattern that is not there. Where `automatic` has
  /// to time patterns there, it takes some tenths of a second (UNTAX_MEASURE).
  gemm_all_scatter(world& w, const gemm_all_scatter_problem& problem,
                   const operator_options& options = {});
  gemm_all_scatter(gemm_all_scatter&&) noexcept;
  gemm_all_scatter& operator=(gemm_all_scatter&&) noexcept;
  /// Collective. Waits for no peer in a world of the host.
  ~gemm_all_scatter();

  /// Collective, one epoch. `a`: [m, k], the same at all ranks. `weights`: this rank's shard of B,
  /// see `weights_shard`. `c`: [m, n], written by all ranks, so it lies in the symmetric heap:
  /// either `result()`, or an allocation of the caller, the same at all ranks. Peers write into it
  /// from the call of `run` to its return, never before or after. With `varying_rows` a and c say
  /// how many rows this run has, and where c lies there is room for m. Throws `not_symmetric` if c
  /// lies elsewhere, `invalid_argument`, and what a failed wait throws.
  ///
  /// In a world of GPUs all three lie in memory of the rank's GPU, which is the current one of the
  /// calling thread, at multiples of 16 bytes and without gaps between rows. With a stream `run` is
  /// asynchronous: it launches on the stream, allocates and reads back nothing, and can be captured
  /// in a CUDA graph; a wait that failed is thrown by `world::check` after it has ended. Peers
  /// write into c from when the stream comes to this run until it has passed it. Without a stream
  /// it returns as above. The runs of one operator are in order: on one stream, or made so by
  /// events. So are those of different operators of a world, in the same order at all ranks: the
  /// kernels of one may need all multiprocessors, and wait for peers.
  ///
  /// A run on a `c` that is new to it waits for all ranks to compare offsets, but not while its
  /// stream is being captured.
  ///
  /// Where the pattern is bulk_library, also as what `automatic` stands for, graphs of a run have
  /// to be destroyed before the operator: NCCL ends no communicator that a graph has calls of.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream = {});
  /// As above, into `result()`, or its first rows.
  void run(const const_matrix& a, const const_matrix& weights, stream_ref stream = {}) {
    run(a, weights, rows_of(result(), a.rows), stream);
  }

  /// The operator's own C [m, n], allocated with the operator.
  [[nodiscard]] matrix result() const;

  /// Rows and columns of this rank's shard of B; no rows where there are more ranks than columns.
  [[nodiscard]] static extent weights_shard(const gemm_all_scatter_problem& problem, int world,
                                            int rank);
  /// In a world of GPUs only `how` was chosen; the rest is what was asked for, and `explain` says
  /// what came of it.
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// What was chosen, and why.
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
  std::unique_ptr<gemm_runner> runner_;  ///< none: this was moved from
  const void* agreed_ = nullptr;
};

}  // namespace untax
