#pragma once

#include <cstdint>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>
#include <untax/world/world.hpp>

namespace untax {

class rope_append_backend;

/// The step between the projection to queries, keys and values and the attention of a layer: bias,
/// norm of heads, rotary position embedding (RoPE), append to the cache.
struct rope_append_problem {
  std::int64_t tokens = 0;    ///< of a run; with `varying_tokens` the most of a run
  std::int64_t heads = 1;     ///< of the queries
  std::int64_t kv_heads = 1;  ///< of keys and values
  std::int64_t head_dim = 128;
  std::int64_t rotated = 0;    ///< the first elements of a head, which are rotated; even; 0: all
  std::int64_t batch = 1;      ///< sequences
  std::int64_t keys = 1;       ///< the most keys of a sequence
  std::int64_t page_size = 0;  ///< rows of a page; 0: the cache has no pages
  std::int64_t pages = 0;      ///< pages of the cache, if it has pages
  std::int64_t positions = 1;  ///< rows of the table of rotations
  dtype type = dtype::bf16;    ///< of all matrices and weights; rotations are fp32
  bool interleaved = false;    ///< elements 2i and 2i + 1 are a pair, not i and i + rotated / 2
  bool bias = false;           ///< qkv has a bias
  bool norm = false;           ///< heads of q and k are divided by their root mean square
  float norm_offset = 0;       ///< added to the weights of the norm: 1 in Gemma
  float epsilon = 1e-6F;       ///< added to the mean of squares
};

/// The operands of a run. A row of qkv has all heads of a token, `head_dim` elements each, side by
/// side: those of the queries, of the keys, of the values. Keys and values are a cache as
/// `attention_shard` has it: key i of sequence b is in row b * keys + i or, with pages, in row
/// page_table[b, i / page_size] * page_size + i % page_size.
struct rope_append_operands {
  const_matrix qkv;              ///< [tokens, (heads + 2 * kv_heads) * head_dim]
  const void* bias = nullptr;    ///< a row as that of qkv; null if the problem has none
  const void* q_norm = nullptr;  ///< [head_dim], weights; both are null if the problem has no norm
  const void* k_norm = nullptr;
  /// [positions, rotated], dense: cosines of the rotated / 2 angles of a position, then sines.
  /// `rope_table` makes it.
  const float* rotations = nullptr;
  const std::int32_t* position = nullptr;  ///< [tokens]: of each token in its sequence
  /// [tokens]: of each token; null if token t belongs to sequence t.
  const std::int32_t* sequence = nullptr;
  /// [batch, ceil(keys / page_size)], dense; null if the cache has no pages.
  const std::int32_t* page_table = nullptr;
  matrix keys;    ///< [batch * keys, kv_heads * head_dim], or [pages * page_size, ...]; updated
  matrix values;  ///< of the same size; updated
  matrix q;       ///< [tokens, heads * head_dim]; written
};

/// Options of rope_append.
struct rope_append_options {
  /// If true, `tokens` is a capacity: each run has any number of tokens up to it.
  bool varying_tokens = false;
  /// No work ahead in the stream writes bias and weights of the norm, so a kernel may read them
  /// before the work ahead has ended. Of GPUs only.
  bool constant_weights = false;
};

/// For each token t, with y = qkv[t] + bias: heads of q and k become y / sqrt(mean(y^2) + epsilon)
/// * (weight + norm_offset) if the problem has a norm, and each pair (a, b) among their rotated
/// elements becomes (a cos - b sin, b cos + a sin) of the token's position. Heads of q go to q[t],
/// keys and values to the row of the token's position in the cache of its sequence. All of it is
/// computed in fp32 and rounded once. Each rank computes for itself: nothing is sent.
/// ops/rope_append/README.md draws it.
class rope_append {
 public:
  /// Not collective. `w` has to outlive the operator. Throws `invalid_argument`. In a world of GPUs
  /// it also throws `unsupported` for a problem without a kernel: fp32, heads of more than 256
  /// elements or of no multiple of 8, or rotated elements that are no multiple of 16.
  rope_append(world& w, const rope_append_problem& problem,
              const rope_append_options& options = {});
  rope_append(rope_append&&) noexcept;
  rope_append& operator=(rope_append&&) noexcept;
  ~rope_append();

  /// Not collective. Results share no memory with the inputs, and no two tokens have one place in
  /// the cache. With `varying_tokens` the rows of qkv are the tokens of the run. Throws
  /// `invalid_argument` before anything is written. On the host that includes values: each position
  /// is in the table of rotations and below `keys`, each sequence in the batch, each page in the
  /// cache. There it returns when all is written.
  ///
  /// In a world of GPUs all operands are in memory of the rank's GPU, and rows of matrices, bias
  /// and weights begin at multiples of 16 bytes. Values cannot be refused there: a token whose
  /// position, sequence or page is out of range, such as one at position -1 that pads a graph, has
  /// zeros as its q and nothing in the cache, and nothing out of range is read. With a stream a run
  /// only launches, and can be captured in a CUDA graph. Without one it starts after the work in
  /// the default stream, and returns when all is written. Runs have no state: those on several
  /// streams may overlap. Several threads may call it.
  void run(const rope_append_operands& operands, stream_ref stream = {});

  /// The kernels that run, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  void check(const rope_append_operands& operands) const;

  rope_append_problem problem_;
  rope_append_options options_;
  int rank_;
  std::string explanation_;
  process_owned<rope_append_backend> backend_;
};

}  // namespace untax
