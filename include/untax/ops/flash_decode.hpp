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

/// The keys and values that a rank holds of all sequences. One row holds one key of all heads,
/// `head_dim` elements each, side by side.
///
/// * Contiguous: sequence b lies in rows b * keys to b * keys + lengths[b] - 1.
/// * Paged: key i of sequence b lies in row page_table[b, i / page_size] * page_size + i %
/// page_size;
///   pages may lie in any order.
struct attention_shard {
  const_matrix keys;    ///< [batch * keys, kv_heads * head_dim], or [pages * page_size, ...]
  const_matrix values;  ///< of the same size
  /// [batch]: how many keys this rank holds of each sequence, from 0 to `keys`.
  const std::int32_t* lengths = nullptr;
  /// [batch, ceil(keys / page_size)], dense; null where the cache has no pages.
  const std::int32_t* page_table = nullptr;
};

/// Attention of one token of each sequence to keys and values that are sharded over the ranks:
/// out = softmax(scale * q K^T) V over the keys of all ranks, the same at every rank. Planned once,
/// run many times. ops/flash_decode/README.md draws it.
///
/// Every rank attends to what it holds; its partial results go to all ranks, and each combines them
/// in rank order: all ranks get the same bits, in every pattern. A sequence of which nobody holds
/// anything gives zeros.
class flash_decode {
 public:
  /// Collective. `w` has to outlive the operator. Throws `invalid_argument`, also for a pattern
  /// that is not there, `disagreement` when ranks plan different things, `out_of_memory`; in a
  /// world of GPUs also `unsupported` for what there is no kernel for (fp32, heads that have not
  /// 64, 128 or 256 elements, more than 16 query heads for a head of the keys, more than 8 ranks).
  flash_decode(world& w, const flash_decode_problem& problem,
               const flash_decode_options& options = {});
  flash_decode(flash_decode&&) noexcept;
  flash_decode& operator=(flash_decode&&) noexcept;
  /// Collective. Waits for no peer in a world of the host.
  ~flash_decode();

  /// Collective, one epoch. `q`: [batch * heads, head_dim], the same at every rank; head h reads
  /// head h * kv_heads / heads of the cache. `out`: of the same size, written. All of the problem's
  /// element type. Returns when `out` is complete and the operands are the caller's again. Throws
  /// `invalid_argument` before anything moves; `timeout`, `peer_lost`, `aborted` when a wait fails.
  ///
  /// In a world of GPUs all of them, lengths and page table too, lie in memory of the rank's GPU,
  /// which is the current one of the calling thread; rows of keys and values begin at multiples of
  /// 16 bytes, those of `out` of 8, those of `q` of 4. With a stream `run` is asynchronous: it
  /// launches on the stream, allocates and reads back nothing, and can be captured in a CUDA graph,
  /// which follows lengths and pages that change: lengths are read before the kernels ahead have
  /// ended, too, but those that are there when they have count. A wait that failed is thrown by
  /// `world::check` after it has ended. Without one it returns as above. The runs of one operator
  /// are in order: on one stream, or made so by events. So are those of different operators of a
  /// world, in the same order at all ranks: the kernels of one may need all multiprocessors, and
  /// wait for peers.
  ///
  /// Where the pattern is bulk_library, also as what `automatic` stands for, graphs of a run have
  /// to be destroyed before the operator: NCCL ends no communicator that a graph has calls of.
  void run(const const_matrix& q, const attention_shard& cache, const matrix& out,
           stream_ref stream = {});

  [[nodiscard]] const flash_decode_plan& plan() const noexcept { return plan_; }
  /// What was chosen, and why.
  [[nodiscard]] const std::string& explain() const noexcept { return explanation_; }

 private:
  void check(const const_matrix& q, const attention_shard& cache, const const_matrix& out) const;

  flash_decode_problem problem_;
  flash_decode_plan plan_;
  std::string explanation_;
  process_owned<attention_backend> backend_;
};

}  // namespace untax
