#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>

#include "engines/gpu/gemm/config.hpp"

namespace untax::gpu {

/// Warps of a block that issues TMA copies, each a sender of its own with memory for two
/// portions: while one waits until what it sent has arrived, so that it can say so, others send.
inline constexpr int sender_warps = 3;

}  // namespace untax::gpu

namespace untax {

/// Who of a rank's kernel are the senders of the protocol.
enum class gather_senders : std::uint8_t {
  elsewhere,       ///< nobody: another kernel, or the copy engines
  comm_ctas,       ///< blocks that do nothing else
  all_ctas_first,  ///< the blocks that multiply, before they do
  warps,           ///< a warp of each of the first blocks that multiply, while they do
  epilogue_warps,  ///< the warps of these that store, until they have something to store
};

/// What becomes of a finished tile.
enum class scatter_way : std::uint8_t {
  store_to_peers,  ///< from shared memory into all copies of C
  tile_flags,      ///< into the rank's own C, and senders are told, who send it on
  local_only,      ///< into the rank's own C; what follows the kernel sends it on
};

/// Who of the blocks that multiply moves.
struct moving_blocks {
  gather_senders who = gather_senders::elsewhere;
  bool by_rows = true;
  int blocks = 0;  ///< that multiply
  int senders = 0;
};

/// The number, as a sender, of one of the four warps beside those that multiply, of block `block`;
/// none if it is `senders` or more.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int sender_beside(const moving_blocks& all, int block,
                                                            int warp) noexcept {
  switch (all.who) {
    case gather_senders::all_ctas_first:
      // By k own columns are multiplied meanwhile, so a block's producer moves last.
      return all.by_rows ? block * 4 + warp : (warp + 3) % 4 * all.blocks + block;
    case gather_senders::warps:
      return warp == 3 ? block : all.senders;
    case gather_senders::epilogue_warps:
      return warp == 1 || warp == 2 ? (warp - 1) * all.blocks + block : all.senders;
    default:
      return all.senders;
  }
}

/// Whether one of these warps sends packets, each thread some.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool sends_packets(const moving_blocks& all, int block,
                                                             int warp) noexcept {
  const bool every = all.who == gather_senders::all_ctas_first;
  return every || (all.who == gather_senders::warps && warp == 3 && block < all.senders);
}
/// A thread that sends packets, and of how many.
struct packet_thread {
  int number = 0;
  int threads = 0;
};
/// Thread `thread` of such a warp.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr packet_thread packet_thread_beside(
    const moving_blocks& all, int block, int thread) noexcept {
  const bool every = all.who == gather_senders::all_ctas_first;
  const int threads = every ? gpu::warpgroup_threads : 32;
  return {block * threads + thread % threads, (every ? all.blocks : all.senders) * threads};
}

}  // namespace untax
