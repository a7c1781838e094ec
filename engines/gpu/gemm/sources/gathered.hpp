#pragma once

#include <cuda.h>

#include <cstdint>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/gemm/sources/segments.hpp"

namespace untax {

/// A of all ranks. It is read in segments, one for each rank: rows of tiles with gather = rows,
/// k-blocks with gather = k; or, where all of A is collected in the inbox, in one.
template <class Protocol>
struct gathered {
  struct arguments {
    bool awaited = false;  ///< all of A has arrived before any of it is read
    bool polled = false;   ///< another warp than the one that loads looks for what comes of A
    std::uint64_t* done =
        nullptr;  ///< in this GPU's memory: blocks that have read all they read, ever
    /// With copy engines, in this GPU's memory: what they say when they have moved something. It is
    /// raised when the peers have read all that came before.
    std::uint64_t* next_use = nullptr;
    arrival_grid arrivals;
    gather_segments segments;
    packet_panel panel;              ///< of what comes in packets
    CUtensorMap a[gpu::most_ranks];  ///< by segment: the rank's own shard, or the inbox
    CUtensorMap
        b_or_c[gpu::most_ranks];  ///< by segment: B where it is k-blocks, C where it is rows
  };
  template <class Io>
  class view;
};

/// A of so few rows that what a rank sends is packets, and the consumer takes them as they are:
/// nobody tells of chunks, and nothing is written to memory and read again before it is multiplied.
/// The protocol is the same; what a chunk is to it, with its signal, is one packet.
template <class Protocol>
struct gathered_packets {
  using arguments = typename gathered<Protocol>::arguments;
  template <class Io>
  class view;
};

/// C of a gather: its rows lie where those of A did, so a tile goes by the segment that it was
/// multiplied of.
struct segmented_result {
  struct arguments {};
  template <class Io>
  class view;
};

/// What the GEMM is given that gathers with a protocol.
template <class Protocol>
using gather_io = gpu::gemm_io<gathered<Protocol>, segmented_result, shard_senders<Protocol>>;
/// The same where A comes in packets.
template <class Protocol>
using packet_gather_io =
    gpu::gemm_io<gathered_packets<Protocol>, segmented_result, packet_senders<Protocol>>;

}  // namespace untax
