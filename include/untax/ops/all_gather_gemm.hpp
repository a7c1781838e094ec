#pragma once

#include <memory>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/world/world.hpp>

namespace untax {

namespace host {
class engine;
}

/// C_r = gather(A) x B_r^T: every rank holds a shard of A (rows, or columns with `gather = k`) and
/// its own weights. Planned once, run many times. The algorithm is that of arXiv 2511.02168;
/// ops/all_gather_gemm/README.md draws it.
class all_gather_gemm {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` when
  /// ranks plan different things, `out_of_memory`.
  all_gather_gemm(world& w, const all_gather_gemm_problem& problem,
                  const operator_options& options = {});
  all_gather_gemm(all_gather_gemm&&) noexcept;
  all_gather_gemm& operator=(all_gather_gemm&&) noexcept;
  /// Collective.
  ~all_gather_gemm();

  /// Collective, one epoch. `a`: this rank's shard, `a_shard()` says its size. `weights`: [n, k].
  /// `c`: [m, n], written. All of the problem's element type. Returns when `c` is complete and the
  /// operands are the caller's again. Throws `invalid_argument` before anything moves; `timeout`,
  /// `peer_lost`, `aborted` when a wait fails.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c);

  /// Rows and columns of this rank's shard of A; either may be 0 where there are more ranks than
  /// rows.
  [[nodiscard]] static extent a_shard(const all_gather_gemm_problem& problem, int world, int rank);
  [[nodiscard]] const gemm_plan& plan() const noexcept { return plan_; }
  /// What was chosen, and why.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  all_gather_gemm_problem problem_;
  gemm_plan plan_;
  std::string explanation_;
  int rank_ = 0;
  std::unique_ptr<host::engine> engine_;
};

}  // namespace untax
