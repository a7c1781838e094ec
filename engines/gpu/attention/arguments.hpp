#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/order/divider.hpp>

#include "engines/gpu/attention/shape.hpp"
#include "engines/gpu/channel/run_arguments.hpp"

namespace untax {
struct packet;
}

namespace untax::gpu {

/// Where the partial result of an item goes when it is whole.
enum class attention_sink : std::uint8_t {
  rows,    ///< into `rows`, for whoever runs next
  outbox,  ///< into `outbox`, as packets, for a kernel that follows at once
  ranks,   ///< to all ranks, as packets, and this kernel combines what arrives
};

/// How many blocks there are for the items, and what divides by that.
struct attention_split {
  int blocks = 1;
  /// Where lengths are equal: as many as have the same number of whole items each, so that nothing
  /// has to be combined, if that leaves at most one in 32 idle. Else all of them.
  int with_whole_items = 1;
  order::divider by_blocks;
  order::divider by_whole;

  attention_split() = default;
  constexpr attention_split(int items, int all)
      : blocks(all), with_whole_items(all), by_blocks(all) {
    const int each = (items + all - 1) / all;
    const int some = items / each;
    if (some * each == items && 32 * (all - some) <= all) with_whole_items = some;
    by_whole = order::divider(with_whole_items);
  }
};

/// What the kernels of attention are given. Scratch memory is this rank's own.
struct attention_arguments {
  attention_shape shape;
  attention_operands memory;
  attention_split split;
  attention_sink sink = attention_sink::rows;
  int ranks = 1;
  int rank = 0;
  packet* parts = nullptr;        ///< of blocks with a part of an item: [block, 2][16, packets]
  std::uint32_t* rows = nullptr;  ///< [batch * heads, words]
  packet* outbox = nullptr;       ///< [set][batch * heads, packets]
  run_arguments run;

  /// Whether the kernel of attention takes what other ranks send.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool receives() const noexcept {
    return sink == attention_sink::ranks && ranks > 1;
  }
};

}  // namespace untax::gpu
