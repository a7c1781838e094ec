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

/// Where the partial result of an item goes once all blocks' parts of it are combined.
enum class attention_sink : std::uint8_t {
  rows,    ///< to `rows`, for the kernels that follow in the stream
  outbox,  ///< to `outbox`, as packets, which a second, concurrent kernel sends
  ranks,   ///< to all ranks, as packets; this kernel also combines the packets of all ranks
};

/// How many blocks share the items, and dividers by these counts.
struct attention_split {
  int blocks = 1;
  /// Blocks to use if all lengths are equal: each gets the same number of whole items, so nothing
  /// has to be combined. `blocks` if that is impossible or would idle more than 1 block in 32.
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

/// Arguments of the attention kernels. Scratch memory is local to this rank.
struct attention_arguments {
  attention_shape shape;
  attention_operands memory;
  attention_split split;
  attention_sink sink = attention_sink::rows;
  int ranks = 1;
  int rank = 0;
  packet* parts = nullptr;        ///< partials of split items: [block, 2][16, packets]
  std::uint32_t* rows = nullptr;  ///< [batch * heads, words]
  packet* outbox = nullptr;       ///< [set][batch * heads, packets]
  run_arguments run;

  /// Whether the attention kernel itself receives the packets of other ranks.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool receives() const noexcept {
    return sink == attention_sink::ranks && ranks > 1;
  }
};

}  // namespace untax::gpu
