#pragma once

#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/gemm/sources/gathered.hpp"

namespace untax {

/// A gather of so few rows that what a rank sends is packets, and the consumer takes them as they
/// are: nobody tells of chunks, and nothing is written to memory and read again before it is
/// multiplied. The protocol is the same; what a chunk is to it, with its signal, is one packet.
template <class Protocol>
struct gathered_packets : gathered<Protocol> {
  packet_panel panel;

  class block_io;
};

}  // namespace untax
