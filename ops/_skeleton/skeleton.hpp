#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/world/world.hpp>

namespace untax {

namespace host {
class engine;
}

/// C [m, n] = A [m, k] x B [n, k]^T, complete at every rank. A is sharded: shards have ceil(m / W)
/// rows, the last ones are shorter; B is the same everywhere.
struct skeleton_problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::bf16;
};

/// Every rank multiplies its rows of A, and all ranks end with all rows of C. Unlike
/// gemm_all_scatter it shards rows, not columns, and C may lie anywhere, since peers write into the
/// operator's inbox. Planned once, run many times. ops/_skeleton/README.md draws it.
class skeleton {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` if
  /// ranks plan differently, `out_of_memory`.
  skeleton(world& w, const skeleton_problem& problem, const operator_options& options = {});
  skeleton(skeleton&&) noexcept;
  skeleton& operator=(skeleton&&) noexcept;
  /// Collective. Waits for no peer.
  ~skeleton();

  /// Collective, one epoch. `a`: this rank's rows, as many as `a_shard()` says. `weights`: [n, k].
  /// `c`: [m, n], written. All have the problem's element type. Returns when `c` is complete and
  /// the operands are the caller's again. Throws `invalid_argument` before anything moves;
  /// `timeout`, `peer_lost`, `aborted` when a wait fails.
  void run(const const_matrix& a, const const_matrix& weights, const matrix& c);

  /// Rows and columns of this rank's shard of A; no rows where there are more ranks than rows.
  [[nodiscard]] static extent a_shard(const skeleton_problem& problem, int world, int rank);
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// The chosen pattern and plan, with the reason.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  skeleton_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  int rank_ = 0;
  process_owned<host::engine> engine_;
};

}  // namespace untax
