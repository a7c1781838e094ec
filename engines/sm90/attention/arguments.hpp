#pragma once

#include <cstdint>

#include "engines/sm90/attention/shape.hpp"
#include "engines/sm90/transfer/arguments.hpp"

namespace untax::sm90 {

/// Where the partial result of an item goes when it is whole.
enum class attention_sink : std::uint8_t {
  rows,     ///< into `rows`, for whoever runs next
  flagged,  ///< the same, and `flags` tells a kernel that runs beside
  ranks,    ///< to all ranks, as packets, and this kernel combines what arrives
};

/// What the kernels of attention are given. Scratch memory is this rank's own.
struct attention_arguments {
  attention_shape shape;
  attention_operands memory;
  attention_sink sink = attention_sink::rows;
  int ranks = 1;
  int rank = 0;
  /// Two unfinished partial results of each block, fp32: [block, 2][16, head_dim], and statistics.
  float* segments = nullptr;
  float* statistics = nullptr;        ///< [block, 2][16, 2]
  std::uint32_t* arrivals = nullptr;  ///< [item]: blocks that have left their part of it
  std::uint32_t* rows = nullptr;      ///< [batch * heads, words]
  std::uint64_t* flags = nullptr;     ///< [item]: epoch in which its rows were written last
  run_arguments run;
};

}  // namespace untax::sm90
