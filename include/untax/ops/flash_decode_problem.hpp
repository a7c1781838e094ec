#pragma once

#include <cstdint>
#include <memory>

#include <untax/core/pattern.hpp>
#include <untax/core/types.hpp>
#include <untax/flow/fault_tap.hpp>

namespace untax {

/// Attention of one token of each of `batch` sequences. Keys and values are sharded over the ranks
/// by position in the sequence: each rank has some, or none, of each sequence.
struct flash_decode_problem {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     ///< of the queries; a multiple of kv_heads
  std::int64_t kv_heads = 1;  ///< of keys and values
  std::int64_t head_dim = 128;
  std::int64_t keys = 0;       ///< the most keys that a rank has of one sequence
  std::int64_t page_size = 0;  ///< rows of a page; 0: the cache has no pages
  std::int64_t pages = 0;      ///< pages of the cache of a rank, if it has pages
  dtype type = dtype::bf16;    ///< of q, keys, values and the result
  /// The element type in which partial results are sent: fp32, or bf16, which halves the bytes, but
  /// not those of packets between GPUs. In bf16 an element of a partial result is off by up to 2^-8
  /// of itself; in fp32 on GPUs by up to 2^-23. The error of statistics is negligible.
  dtype partials = dtype::f32;
  float scale = 0;      ///< of the logits; 0: 1 / sqrt(head_dim)
  float logit_cap = 0;  ///< a logit becomes cap * tanh(logit / cap); 0: no cap
};

/// Options of flash_decode. A value of 0 lets untax choose. Options that change the plan have to be
/// the same at all ranks.
struct flash_decode_options {
  pattern how = pattern::automatic;
  /// Of the host only. On GPUs the caller launches a run eagerly, or captures it in a graph.
  launch_mode launch = launch_mode::graph;
  int workers = 0;  ///< computing workers of a rank; on GPUs blocks
  /// Of the host only: senders of a rank, if the pattern has them. On GPUs they are refused.
  int senders = 0;
  /// Parts into which a rank splits its keys of a sequence. Where they are given, the bits of a
  /// result depend on its sequence alone: not on the others, their number or that of workers. On
  /// GPUs a world of one rank takes 8 at most, and others none.
  int splits = 0;
  std::shared_ptr<fault_tap> faults = nullptr;  ///< for tests in which ranks or signals fail
};

/// The plan of a protocol, besides the problem. All values are positive, but in a world of GPUs
/// `workers` 0 means a block for each multiprocessor, and `splits` 0 that blocks share keys so that
/// all have as many.
struct flash_decode_plan {
  int world = 1;
  int rank = 0;
  pattern how = pattern::fused_sequential;
  int workers = 1;
  int senders = 1;
  int splits = 1;
};

}  // namespace untax
