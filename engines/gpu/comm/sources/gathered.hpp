#pragma once

#include <cuda.h>

#include <cstdint>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/sources/segments.hpp"

namespace untax {

/// A source: A of all ranks, in one segment per rank: rows of tiles with gather = rows, k-blocks
/// with gather = k. Or in a single segment, if all of A is collected in the inbox.
template <class Protocol>
struct gathered {
  struct arguments {
    bool all_arrived = false;  ///< all of A has arrived before any of it is read
    bool polled = false;       ///< a flag poller polls the flags of A, not the producer
    std::uint64_t* done =
        nullptr;  ///< in this GPU's memory: blocks that have read all they need of A, in all runs
    /// With DMA engines, in this GPU's memory: the value with which they signal a copied chunk. It
    /// is raised when peers have read everything of the previous use.
    std::uint64_t* next_use = nullptr;
    arrival_grid arrivals;
    gather_segments segments;
    packet_panel panel;              ///< the layout of A in packets
    CUtensorMap a[gpu::most_ranks];  ///< by segment: the rank's own shard, or the inbox
    CUtensorMap
        b_or_c[gpu::most_ranks];  ///< by segment: B if segments are k-blocks, C if they are rows
  };
  template <class Io>
  class view;
};

/// A source: A of few rows, which ranks send as packets. MMA warpgroups load the packets
/// themselves: there are no flags, and A is not written to memory and read again before it is
/// multiplied. The protocol is that of `gathered`; a packet is a chunk together with its signal.
template <class Protocol>
struct gathered_packets {
  using arguments = typename gathered<Protocol>::arguments;
  template <class Io>
  class view;
};

/// A sink for the C of a gather. The rows of C are those of A, so the segment of A determines where
/// tiles go.
struct segmented_result {
  struct arguments {};
  template <class Io>
  class view;
};

/// Arguments of the GEMM that gathers with a protocol.
template <class Protocol>
using gather_io = gpu::gemm_io<gathered<Protocol>, segmented_result, shard_senders<Protocol>>;
/// Arguments of the GEMM that gathers packets.
template <class Protocol>
using packet_gather_io =
    gpu::gemm_io<gathered_packets<Protocol>, segmented_result, packet_senders<Protocol>>;

}  // namespace untax
