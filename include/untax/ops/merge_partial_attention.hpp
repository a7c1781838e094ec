#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/pattern.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>
#include <untax/flow/fault_tap.hpp>
#include <untax/tile/shard.hpp>
#include <untax/world/world.hpp>

namespace untax {

class merge_backend;
class run_turns;

/// The heads of the merged result that a rank gets.
enum class merged_heads : std::uint8_t {
  all,  ///< all heads, with the same bits at every rank
  own,  ///< its share: ceil(heads / W); the last ranks have fewer or none
};

/// Partial results of attention that any kernel computed, each rank's over its own part of the
/// keys.
struct merge_partial_attention_problem {
  std::int64_t tokens = 1;
  std::int64_t heads = 1;
  std::int64_t head_dim = 128;
  dtype type = dtype::bf16;  ///< of partial results and of the merged one; logarithms are fp32
  merged_heads get = merged_heads::all;
  bool log2 = false;  ///< logarithms, given and returned, are to base 2; else natural
};

/// Options of merge_partial_attention. A value of 0 lets untax choose. Options that change the plan
/// have to be the same at all ranks.
struct merge_partial_attention_options {
  pattern how = pattern::automatic;  ///< bulk_synchronous, fused_sequential or fused_specialized
  /// Of the host only.
  launch_mode launch = launch_mode::graph;
  /// Workers of a rank that merge, and send if there are no senders. On GPUs they are blocks.
  int workers = 0;
  int senders = 0;  ///< senders of a rank, if the pattern has them
  /// If true, `tokens` is a capacity: each run has any number of tokens up to it, the same at all
  /// ranks.
  bool varying_tokens = false;
  std::shared_ptr<fault_tap> faults = nullptr;  ///< for tests in which ranks or signals fail
};

/// The plan of a protocol, besides the problem. All values are positive. But on GPUs `workers` are
/// blocks, 0 means that their number follows from the work, and there are no `senders`.
struct merge_partial_attention_plan {
  int world = 1;
  int rank = 0;
  pattern how = pattern::fused_sequential;
  int workers = 1;
  int senders = 1;
};

/// Exchanges partial results of attention between the ranks and merges them by their logarithms of
/// sums of exponentials. Row t * heads + h is head h of token t. With w_r = exp(lse_r), over the
/// ranks r in order and in fp32, the result is
/// out = sum of w_r o_r / sum of w_r, lse = log(sum of w_r).
/// It is planned once and run many times. ops/merge_partial_attention/README.md draws it.
class merge_partial_attention {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` if
  /// ranks plan different problems, `out_of_memory`. In a world of GPUs it also throws
  /// `unsupported` for other patterns than fused_sequential and for more than 16 ranks, and
  /// `invalid_argument` if the rows of `partial_o` are not multiples of 16 bytes.
  merge_partial_attention(world& w, const merge_partial_attention_problem& problem,
                          const merge_partial_attention_options& options = {});
  merge_partial_attention(merge_partial_attention&&) noexcept;
  merge_partial_attention& operator=(merge_partial_attention&&) noexcept;
  /// Collective. In a world of the host it waits for no peer. In a world of GPUs it waits for the
  /// rank's GPU and for all ranks, unless an exception is leaving.
  ~merge_partial_attention();

  /// Collective, one epoch. `partial_o`: [tokens * heads, head_dim]. `partial_lse`: [tokens,
  /// heads], fp32; an infinity of either sign says that a part is empty, and then its row of
  /// `partial_o` may hold any values. `out`: [tokens * own, head_dim] and `lse`: [tokens, own],
  /// fp32, written, where `own` is the size of `heads_of`. A row of which all parts are empty
  /// becomes zeros and -infinity. With `varying_tokens` the rows of `partial_lse` are the tokens of
  /// this run. Returns when the result is complete and the operands may be changed again. Throws
  /// `invalid_argument` before anything is sent; `timeout`, `peer_lost`, `aborted` if a wait fails.
  /// A world of the host has no streams: a stream is `unsupported` there.
  ///
  /// In a world of GPUs all matrices are in memory of the rank's GPU, which is the current device
  /// of the calling thread. Results share no memory with operands, and rows of `partial_o` and
  /// `out` begin at multiples of 16 bytes. With a stream `run` is asynchronous and can be captured
  /// in a CUDA graph. Without one it starts after the work in the default stream, and returns as
  /// above. Runs of a world take place in the order of the calls, which is the same at all ranks,
  /// also on several streams and in graphs (docs/design.md, "The order of runs").
  void run(const const_matrix& partial_o, const const_matrix& partial_lse, const matrix& out,
           const matrix& lse, stream_ref stream = {});

  /// The heads that `rank` of `world` ranks gets.
  [[nodiscard]] static range heads_of(const merge_partial_attention_problem& problem, int world,
                                      int rank);
  /// The plan.
  [[nodiscard]] const merge_partial_attention_plan& plan() const noexcept { return plan_; }
  /// The choices of the plan, and their reasons, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  merge_partial_attention_problem problem_;
  merge_partial_attention_plan plan_;
  bool varying_ = false;
  std::string explanation_;
  process_owned<run_turns> turns_;
  process_owned<merge_backend> backend_;
};

}  // namespace untax
