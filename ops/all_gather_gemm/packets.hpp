#pragma once

#include "ops/all_gather_gemm/gather.hpp"
#include "ops/all_gather_gemm/packet_panel.hpp"

namespace untax {

/// A gather of so few rows that what a rank sends is packets, and the consumer takes them as they
/// are: nobody tells of chunks, and nothing is written to memory and read again before it is
/// multiplied. The protocol is the same; what a chunk is to it, with its signal, is one packet.
struct packet_gather : gather_io {
  packet_panel panel;

  class block_io;
};

}  // namespace untax
