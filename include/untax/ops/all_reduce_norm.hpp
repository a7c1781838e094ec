#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/norm_output.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/symmetric/owned_symmetric.hpp>
#include <untax/world/world.hpp>

namespace untax {

class device_arguments;
class device_norm;
class run_turns;
namespace host {
class engine;
}
class row_plans;

/// x = sum over ranks of in + residual, [tokens, hidden], and out = x / rms(x) * weight, both
/// complete at every rank. rms(x) = sqrt(mean of the squares of a row + epsilon).
struct all_reduce_norm_problem {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  dtype type = dtype::bf16;  ///< of in, residual, weight and x
  norm_output output = norm_output::same;
  float epsilon = 1e-5F;
};

/// The inputs of a rank in one run.
struct norm_inputs {
  const_matrix in;               ///< [tokens, hidden]: this rank's addend
  const_matrix residual;         ///< [tokens, hidden], the same at all ranks; may be x
  const void* weight = nullptr;  ///< [hidden], the same at all ranks
  float scale = 1;               ///< of e4m3 results, the same at all ranks; positive
};

/// The results of a run. Rows follow each other without gaps.
struct norm_results {
  void* x = nullptr;        ///< [tokens, hidden]
  void* out = nullptr;      ///< [tokens, hidden], elements of the type of x, or bytes of e4m3
  float* scales = nullptr;  ///< [tokens], only with e4m3_per_token
};

/// The all-reduce between the layers of a transformer together with the operations after it:
/// residual, RMSNorm and, as an option, quantisation. Additions are in fp32 in rank order, the
/// residual last, and rounded once; rows are normalised as they are in x after rounding. So all
/// ranks have the same bits, in every run. It is planned once and run many times.
/// ops/all_reduce_norm/README.md draws it.
class all_reduce_norm {
 public:
  /// Collective. `w` has to outlive the operator. It has the patterns bulk_synchronous,
  /// fused_sequential and fused_specialized. Of the options, tile_n and panel_k have no effect, and
  /// tile_m is the number of tokens that are sent as a whole. Throws `invalid_argument`, also for
  /// other patterns, `disagreement` if ranks plan different problems, and `out_of_memory`. In a
  /// world of GPUs its only pattern is fused_sequential, one kernel; for the other two it throws
  /// `unsupported` there, and `invalid_argument` for fp32 and for hidden sizes that are not
  /// multiples of 8.
  all_reduce_norm(world& w, const all_reduce_norm_problem& problem,
                  const operator_options& options = {});
  all_reduce_norm(all_reduce_norm&&) noexcept;
  all_reduce_norm& operator=(all_reduce_norm&&) noexcept;
  /// Collective. In a world of the host it waits for no peer. In a world of GPUs it waits for the
  /// rank's GPU and for all ranks, unless an exception is leaving.
  ~all_reduce_norm();

  /// Collective, one epoch. Results may be anywhere in memory. They share none with the inputs and
  /// with each other, but `residual` may be x. With two phases they are computed in `result()`, and
  /// copied at the end if they are elsewhere. With `varying_rows` the rows of `in` are the tokens
  /// of this run. Returns when results are complete and inputs may be changed again. Throws
  /// `invalid_argument` before anything is sent; `timeout`, `peer_lost`, `aborted` if a wait fails;
  /// `disagreement` if ranks have different tokens.
  ///
  /// In a world of GPUs everything is in memory of the rank's GPU, which is the current device of
  /// the calling thread, at multiples of 16 bytes and without gaps between rows. With a stream
  /// `run` is asynchronous and can be captured in a CUDA graph. `world::check` throws the error of
  /// a failed wait after the run has ended. Without a stream it starts after the work in the
  /// default stream, and returns as above. Runs of a world take place in the order of the calls,
  /// which is the same at all ranks, also on several streams and in graphs (docs/design.md, "The
  /// order of runs").
  void run(const norm_inputs& inputs, const norm_results& results, stream_ref stream = {});
  /// As above, into `result()`.
  void run(const norm_inputs& inputs, stream_ref stream = {}) { run(inputs, result(), stream); }

  /// The operator's own results, in the symmetric heap. With two phases peers write into them from
  /// the call of `run` to its return, also if results go elsewhere; never before or after.
  [[nodiscard]] norm_results result() const;

  [[nodiscard]] const all_reduce_norm_problem& problem() const noexcept { return problem_; }
  /// The plan; with `varying_rows` that of the most tokens.
  [[nodiscard]] const protocol_plan& plan() const noexcept { return plan_; }
  /// The choices of the plan, and their reasons, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  void check(const norm_inputs& inputs, const norm_results& results, std::int64_t tokens) const;
  void check_on_device(const norm_inputs& inputs, const norm_results& results) const;
  [[nodiscard]] norm_results own_results() const;
  void take_turn(const norm_inputs& inputs, const norm_results& results, std::int64_t tokens,
                 stream_ref stream);
  void end() noexcept;

  world* world_;
  all_reduce_norm_problem problem_;
  protocol_plan plan_;
  std::string explanation_;
  process_owned<run_turns> turns_;
  std::int64_t tokens_ = -1;                ///< of the last run on a GPU
  owned_symmetric<std::byte> own_;          ///< x, then out, then scales
  std::shared_ptr<const row_plans> plans_;  ///< only if runs have different numbers of tokens
  process_owned<host::engine> engine_;
  process_owned<device_norm> device_;         ///< instead, in a world of GPUs
  std::unique_ptr<device_arguments> usable_;  ///< with `device_`
};

}  // namespace untax
