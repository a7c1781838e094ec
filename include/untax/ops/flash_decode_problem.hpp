#pragma once

#include <cstdint>
#include <memory>

#include <untax/core/pattern.hpp>
#include <untax/core/types.hpp>
#include <untax/flow/fault_tap.hpp>

namespace untax {

/// Attention of one token of each of `batch` sequences. Keys and values are sharded over the ranks
/// by position in the sequence: each holds some, or none, of each.
struct flash_decode_problem {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     ///< of the queries; a multiple of kv_heads
  std::int64_t kv_heads = 1;  ///< of keys and values
  std::int64_t head_dim = 128;
  std::int64_t keys = 0;       ///< the most that a rank holds of one sequence
  std::int64_t page_size = 0;  ///< rows of a page; 0: the cache has no pages
  std::int64_t pages = 0;      ///< of which the cache of a rank consists, where it has pages
  dtype type = dtype::bf16;    ///< of q, keys, values and the result
  /// Of partial results on their way: fp32, or bf16, which halves what is sent, but not as packets
  /// between GPUs. Statistics lose nothing worth mentioning; each element of a partial result is
  /// off by up to 2^-8 of itself, and on GPUs one of fp32 by up to 2^-23.
  dtype partials = dtype::f32;
  float scale = 0;      ///< of the logits; 0: 1 / sqrt(head_dim)
  float logit_cap = 0;  ///< cap * tanh(logit / cap) instead of a logit; 0: none
};

/// How it is carried out. Zero means: let untax choose.
struct flash_decode_options {
  pattern how = pattern::automatic;
  /// Of the host only: on GPUs a run is launched eagerly, or captured in a graph, by its caller.
  launch_mode launch = launch_mode::graph;
  int workers = 0;  ///< computing workers of a rank; GPU: blocks
  /// The rest is of the host only. On GPUs senders and splits that are not 0 are refused.
  int senders = 0;  ///< moving workers of a rank, where the pattern has them
  int splits = 0;   ///< parts into which a rank cuts what it holds of a sequence
  std::shared_ptr<fault_tap> faults =
      nullptr;  ///< for tests of what happens when ranks or signals fail
};

/// What a protocol needs to know beside the problem. All values are positive; in a world of GPUs
/// `workers` 0 is a block for each multiprocessor.
struct flash_decode_plan {
  int world = 1;
  int rank = 0;
  pattern how = pattern::fused_sequential;
  int workers = 1;
  int senders = 1;
  int splits = 1;
};

}  // namespace untax
