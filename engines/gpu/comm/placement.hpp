#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>

#include "engines/gpu/gemm/config.hpp"

namespace untax::gpu {

/// Sender warps of a block that issues TMA copies. Each is a sender with two stages of memory:
/// while one warp waits for its copies to complete, to publish them, the other warps send.
inline constexpr int sender_warps = 3;

}  // namespace untax::gpu

namespace untax {

/// Which part of a rank's kernel contains the senders of the protocol.
enum class gather_senders : std::uint8_t {
  elsewhere,       ///< none of it: another kernel or the copy engines send
  comm_ctas,       ///< blocks that do nothing else
  all_ctas_first,  ///< the blocks that multiply, before they start to
  warps,           ///< one warp of each of the first blocks that multiply, meanwhile
  epilogue_warps,  ///< the epilogue warps of these blocks, until there is a tile to store
};

/// What happens to a finished tile.
enum class scatter_way : std::uint8_t {
  store_to_peers,  ///< it is stored from shared memory to all copies of C
  tile_flags,      ///< it is stored to the rank's own C, and its flag lets senders send it on
  local_only,      ///< it is stored to the rank's own C; what follows the kernel sends it on
};

/// Which of the blocks that multiply also send.
struct moving_blocks {
  gather_senders who = gather_senders::elsewhere;
  bool by_rows = true;
  int blocks = 0;  ///< number of blocks that multiply
  int senders = 0;
};

/// The sender number of warp `warp` of block `block`, one of the four warps beside the MMA
/// warpgroups. If it is `senders` or more, the warp is not a sender.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int sender_beside(const moving_blocks& all, int block,
                                                            int warp) noexcept {
  switch (all.who) {
    case gather_senders::all_ctas_first:
      // With gather = k the warps multiply the rank's own columns meanwhile, so the producer warp
      // of a block sends last.
      return all.by_rows ? block * 4 + warp : (warp + 3) % 4 * all.blocks + block;
    case gather_senders::warps:
      return warp == 3 ? block : all.senders;
    case gather_senders::epilogue_warps:
      return warp == 1 || warp == 2 ? (warp - 1) * all.blocks + block : all.senders;
    default:
      return all.senders;
  }
}

/// Whether warp `warp` of block `block` sends packets; if so, each of its threads sends some.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool sends_packets(const moving_blocks& all, int block,
                                                             int warp) noexcept {
  const bool every = all.who == gather_senders::all_ctas_first;
  return every || (all.who == gather_senders::warps && warp == 3 && block < all.senders);
}
/// A thread that sends packets: its number, and how many such threads there are.
struct packet_thread {
  int number = 0;
  int threads = 0;
};
/// The number of thread `thread` in a warp that sends packets, and the number of all such threads.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr packet_thread packet_thread_beside(
    const moving_blocks& all, int block, int thread) noexcept {
  const bool every = all.who == gather_senders::all_ctas_first;
  const int threads = every ? gpu::warpgroup_threads : 32;
  return {block * threads + thread % threads, (every ? all.blocks : all.senders) * threads};
}

}  // namespace untax
