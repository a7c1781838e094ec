#pragma once

#include <cstdint>

#include <untax/core/pattern.hpp>

namespace untax {

/// The capacities of a decoder, the same at all ranks.
struct decoder_options {
  std::int64_t sequences = 16;  ///< at a time, and so of a step
  /// Of a sequence, at most the positions of the model; 0: 2048, or all positions if there are
  /// fewer.
  std::int64_t tokens = 0;
  std::int64_t page_size = 64;        ///< tokens of a page of the cache
  std::int64_t pages = 0;             ///< of the cache; 0: as many as all sequences may need
  std::int64_t prompt_tokens = 2048;  ///< of all prompts of one prefill
  /// Keys of all sequences of one prefill, cached ones as well; 0: prompt_tokens, but at least
  /// `tokens`.
  std::int64_t prompt_keys = 0;
  bool logits = false;  ///< keep the logits of all tokens, not only the largest
  /// Of GPUs: a step is launched as a graph, from the second one of as many sequences on, unless
  /// its stream is captured or the default one. Ranks that share a GPU have none.
  bool graphs = false;
  /// Of GPUs: steps of few sequences are one kernel, for models that there is one for.
  bool one_kernel = true;
  /// The bits of a sequence's logits depend on its own tokens and calls alone: not on the other
  /// sequences of a run, their number or their lengths. Steps are not one kernel then, and products
  /// of few rows take longer. Refused with bulk_library.
  bool invariant = false;
  /// `automatic`: the operators that overlap and fuse, each as it chooses. bulk_synchronous: sums
  /// over ranks are operators of their own, and each ends before the next begins. bulk_library: the
  /// same by library calls, of cuBLASLt and NCCL on GPUs; attention, rotation and norms are those
  /// of untax there, too. Others are refused.
  pattern how = pattern::automatic;
  /// Of the host only, where bulk patterns start threads for each kernel if it is `eager`.
  launch_mode launch = launch_mode::graph;
};

}  // namespace untax
