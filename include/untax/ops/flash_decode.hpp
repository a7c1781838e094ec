#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/flash_decode_problem.hpp>
#include <untax/world/world.hpp>

namespace untax {

class attention_backend;
class run_turns;

/// The keys and values that a rank has of all sequences. A row has one key of all heads, `head_dim`
/// elements each, side by side.
///
/// * Contiguous: sequence b is in rows b * keys to b * keys + lengths[b] - 1.
/// * Paged: key i of sequence b is in row page_table[b, i / page_size] * page_size + i % page_size.
///   Pages may be in any order.
struct attention_shard {
  const_matrix keys;    ///< [batch * keys, kv_heads * head_dim], or [pages * page_size, ...]
  const_matrix values;  ///< of the same size
  /// [batch]: the number of keys that this rank has of each sequence, from 0 to `keys`.
  const std::int32_t* lengths = nullptr;
  /// [batch, ceil(keys / page_size)], dense; null if the cache has no pages.
  const std::int32_t* page_table = nullptr;
};

/// Attention of one token of each sequence to keys and values that are sharded over the ranks. With
/// the keys of all ranks, and the same at every rank, it is
/// out = softmax(scale * q K^T) V.
/// It is planned once and run many times. The algorithm is that of arXiv 2511.02168;
/// ops/flash_decode/README.md draws it.
///
/// Every rank computes attention to its own keys and sends the partial results to all ranks. Each
/// rank combines them in rank order, so all ranks get the same bits, in every pattern. The result
/// of a sequence without keys is zero.
class flash_decode {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, also for a pattern
  /// that does not exist, `disagreement` if ranks plan different problems, `out_of_memory`. In a
  /// world of GPUs it also throws `unsupported` for a problem without a kernel: fp32, heads that do
  /// not have 64, 128 or 256 elements, more than 16 query heads for a head of the keys, more than 8
  /// ranks.
  flash_decode(world& w, const flash_decode_problem& problem,
               const flash_decode_options& options = {});
  flash_decode(flash_decode&&) noexcept;
  flash_decode& operator=(flash_decode&&) noexcept;
  /// Collective. In a world of the host it waits for no peer. In a world of GPUs it waits for the
  /// rank's GPU and for all ranks, unless an exception is leaving.
  ~flash_decode();

  /// Collective, one epoch. `q`: [batch * heads, head_dim], the same at every rank; head h reads
  /// head h * kv_heads / heads of the cache. `out`: of the same size, written. All have the
  /// problem's element type, and `out` shares no memory with the others. Returns when `out` is
  /// complete and the operands may be changed again. Throws `invalid_argument` before anything is
  /// sent; `timeout`, `peer_lost`, `aborted` if a wait fails.
  ///
  /// In a world of GPUs all of them, and lengths and page table, are in memory of the rank's GPU,
  /// which is the current device of the calling thread. Rows of keys and values begin at multiples
  /// of 16 bytes, those of `out` of 8, those of `q` of 4. With a stream `run` is asynchronous: it
  /// launches on the stream, allocates and reads back nothing, and can be captured in a CUDA graph.
  /// Replays use the lengths and pages of their time. A run also reads lengths before the kernels
  /// ahead of it have ended, but uses the values that are there after their end. `world::check`
  /// throws the error of a failed wait after the run has ended. Without a stream it starts after
  /// the work in the default stream, and returns as above. Runs of a world take place in the order
  /// of the calls, which is the same at all ranks, also on several streams and in graphs
  /// (docs/design.md, "The order of runs").
  ///
  /// If the pattern is bulk_library, also as the choice of `automatic`, graphs of a run have to be
  /// destroyed before the operator: NCCL ends no communicator whose calls are in a graph.
  void run(const const_matrix& q, const attention_shard& cache, const matrix& out,
           stream_ref stream = {});

  /// The plan.
  [[nodiscard]] const flash_decode_plan& plan() const noexcept { return plan_; }
  /// The choices of the plan, and their reasons, as text.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  void check(const const_matrix& q, const attention_shard& cache, const const_matrix& out) const;

  flash_decode_problem problem_;
  flash_decode_plan plan_;
  std::string explanation_;
  process_owned<run_turns> turns_;
  process_owned<attention_backend> backend_;
};

}  // namespace untax
