#pragma once

#include <cstdint>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>
#include <untax/order/attention.hpp>
#include <untax/world/world.hpp>

namespace untax {

class flash_attention_backend;
class run_turns;

/// Attention of all queries of each sequence to the keys of the same sequence, as in prefill;
/// forward only.
struct flash_attention_problem {
  std::int64_t batch = 1;     ///< sequences
  std::int64_t heads = 1;     ///< of the queries; a multiple of kv_heads
  std::int64_t kv_heads = 1;  ///< of keys and values: head h reads head h * kv_heads / heads
  std::int64_t head_dim = 128;
  std::int64_t queries = 0;  ///< of a sequence; the most if lengths differ
  std::int64_t keys = 0;     ///< of a sequence; the most if lengths differ
  bool causal = false;       ///< the last query sees all keys, the one before it one less, ...
  dtype type = dtype::bf16;  ///< of all matrices
  float scale = 0;           ///< of the logits; 0: 1 / sqrt(head_dim)
};

/// The matrices of a run. A row has all heads of a token, `head_dim` elements each, side by side.
/// Sequence b is in rows begins[b] to begins[b + 1] - 1. Without `begins` all sequences have the
/// problem's length and follow each other. Sequences may be empty.
struct flash_attention_operands {
  const_matrix q;       ///< [rows of queries, heads * head_dim]
  const_matrix keys;    ///< [rows of keys, kv_heads * head_dim]
  const_matrix values;  ///< of the same size
  matrix out;           ///< as q; written
  /// [rows of queries, heads], dense; written. The natural logarithm of the sum of the exponentials
  /// of scaled logits, with which results over parts of the keys are merged. May be null.
  float* log_sums = nullptr;
  const std::int32_t* query_begins = nullptr;  ///< [batch + 1], not decreasing
  const std::int32_t* key_begins = nullptr;    ///< as `query_begins`, for keys; both or none are
                                               ///< null
};

/// Options of flash_attention.
struct flash_attention_options {
  /// The order of blocks; of GPUs only. It changes no bit of the result.
  order::attention_order order = order::attention_order::automatic;
};

/// out = softmax(scale * q keys^T) values for every query. Each rank computes for itself: nothing
/// is sent. A query that sees no keys gets zeros, and minus infinity as its logarithm.
/// ops/flash_attention/README.md draws it.
class flash_attention {
 public:
  /// Not collective. `w` has to outlive the operator. Throws `invalid_argument`. In a world of GPUs
  /// it also throws `unsupported` for a problem without a kernel: fp32, or heads that do not have
  /// 64, 128 or 256 elements.
  flash_attention(world& w, const flash_attention_problem& problem,
                  const flash_attention_options& options = {});
  flash_attention(flash_attention&&) noexcept;
  flash_attention& operator=(flash_attention&&) noexcept;
  ~flash_attention();

  /// Not collective. `out` shares no memory with the other matrices. Throws `invalid_argument`
  /// before anything is written. On the host it returns when `out` is complete.
  ///
  /// In a world of GPUs the operands, with `begins`, are in memory of the rank's GPU, and rows
  /// begin at multiples of 16 bytes. The values of `begins` are not checked there. With a stream a
  /// run only launches, and can be captured in a CUDA graph. Without one it starts after the work
  /// in the default stream, and returns when `out` is complete. Runs of one operator take place in
  /// the order of the calls, also on several streams and in graphs; those of others may overlap
  /// with them (docs/design.md, "The order of runs"). Several threads may call it.
  void run(const flash_attention_operands& operands, stream_ref stream = {});

  /// The kernels that run, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  void check(const flash_attention_operands& operands) const;

  flash_attention_problem problem_;
  int rank_;
  std::string explanation_;
  process_owned<run_turns> turns_;
  process_owned<flash_attention_backend> backend_;
};

}  // namespace untax
