#pragma once

#include <cstdint>

#include <untax/core/pattern.hpp>

#include "ops/timing/predictor.hpp"

namespace untax {

/// A step of decoding of a model: the part that each of `ranks` ranks has.
struct timed_chain {
  int ranks = 1;
  std::int64_t sequences = 1;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;     ///< at a rank
  std::int64_t kv_heads = 0;  ///< at a rank
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;  ///< at a rank
  std::int64_t vocabulary = 0;    ///< at a rank
  bool one_kernel = false;        ///< whether the fused step is one kernel
};

/// The seconds of a step's parts.
struct chain_parts {
  double layer = 0;
  double ends = 0;  ///< embedding, first norm, head and the largest logit
};

/// Predicts a step from its parts: the times of products and attention alone, sums over ranks, and
/// a start for each kernel, or for each time that the blocks of the one kernel synchronise. `keys`:
/// the keys that a layer sees of each sequence. `how` is bulk_library, bulk_synchronous, or
/// automatic for operators that fuse. docs/timing.md says how far predictions are from
/// measurements.
[[nodiscard]] chain_parts predict_chain(predictor& p, const timed_chain& c, std::int64_t keys,
                                        pattern how, launch_mode launch);

}  // namespace untax
