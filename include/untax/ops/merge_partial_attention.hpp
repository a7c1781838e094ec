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

/// Which heads of the merged result a rank gets.
enum class merged_heads : std::uint8_t {
  all,  ///< all of them, the same bits at every rank
  own,  ///< its share: ceil(heads / W), the last ranks fewer or none
};

/// Partial results of attention that anybody's kernel made, each rank's over its own part of the
/// keys.
struct merge_partial_attention_problem {
  std::int64_t tokens = 1;
  std::int64_t heads = 1;
  std::int64_t head_dim = 128;
  dtype type = dtype::bf16;  ///< of partial results and of the merged one; logarithms are fp32
  merged_heads get = merged_heads::all;
  bool log2 = false;  ///< logarithms are to base 2, those that come out too; else natural
};

/// How it is carried out. Zero means: let untax choose.
struct merge_partial_attention_options {
  pattern how = pattern::automatic;  ///< bulk_synchronous, fused_sequential or fused_specialized
  launch_mode launch = launch_mode::graph;
  int workers = 0;  ///< of a rank, that merge, and send where nobody else does
  int senders = 0;  ///< of a rank, that send, where the pattern has them
  /// `tokens` is a capacity: each run has any number up to it, the same at all ranks.
  bool varying_tokens = false;
  std::shared_ptr<fault_tap> faults =
      nullptr;  ///< for tests of what happens when ranks or signals fail
};

/// What a protocol needs to know beside the problem. All values are positive; but on GPUs `workers`
/// are blocks, 0 being as many as there is work for, and there are no `senders`.
struct merge_partial_attention_plan {
  int world = 1;
  int rank = 0;
  pattern how = pattern::fused_sequential;
  int workers = 1;
  int senders = 1;
};

/// Exchanges partial results of attention over the ranks and merges them by their logarithms of
/// sums of exponentials. Row t * heads + h is head h of token t. With w_r = exp(lse_r):
/// out = sum of w_r o_r / sum of w_r, lse = log(sum of w_r), over the ranks r in order, in fp32.
/// Planned once, run many times. ops/merge_partial_attention/README.md draws it.
class merge_partial_attention {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, `disagreement` when
  /// ranks plan different things, `out_of_memory`; in a world of GPUs `unsupported` for other
  /// patterns than fused_sequential and more than 16 ranks.
  merge_partial_attention(world& w, const merge_partial_attention_problem& problem,
                          const merge_partial_attention_options& options = {});
  merge_partial_attention(merge_partial_attention&&) noexcept;
  merge_partial_attention& operator=(merge_partial_attention&&) noexcept;
  /// Collective. On hosts it waits for no peer.
  ~merge_partial_attention();

  /// Collective, one epoch. `partial_o`: [tokens * heads, head_dim]. `partial_lse`: [tokens,
  /// heads], fp32; -infinity says that a part is empty, and then its row of `partial_o` may hold
  /// anything. `out`: [tokens * own, head_dim] and `lse`: [tokens, own], fp32, written, where `own`
  /// is what `heads_of` says; a row of which all parts are empty becomes zeros and -infinity. Where
  /// tokens vary, the rows of `partial_lse` say how many there are. Returns when the result is
  /// complete and the operands are the caller's again. Throws `invalid_argument` before anything
  /// moves; `timeout`, `peer_lost`, `aborted` when a wait fails.
  /// In a world of GPUs all of them lie in memory of the rank's GPU, which is the current device,
  /// and what comes out shares none with what goes in; rows begin at multiples of 16 bytes. With a
  /// stream the run is put there, which may be captured, and nothing is waited for.
  void run(const const_matrix& partial_o, const const_matrix& partial_lse, const matrix& out,
           const matrix& lse, stream_ref stream = {});

  /// The heads that a rank gets.
  [[nodiscard]] static range heads_of(const merge_partial_attention_problem& problem, int world,
                                      int rank);
  [[nodiscard]] const merge_partial_attention_plan& plan() const noexcept { return plan_; }
  /// What was chosen, and why.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  merge_partial_attention_problem problem_;
  merge_partial_attention_plan plan_;
  bool varying_ = false;
  std::string explanation_;
  process_owned<merge_backend> backend_;
};

}  // namespace untax
