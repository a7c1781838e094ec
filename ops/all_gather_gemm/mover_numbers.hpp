#pragma once

#include "ops/all_gather_gemm/device_plan.hpp"

namespace untax {

/// Who of the blocks that multiply moves.
struct moving_blocks {
  gather_movers who = gather_movers::elsewhere;
  bool by_rows = true;
  int blocks = 0;  ///< that multiply
  int movers = 0;
};

/// The number, as a mover, of one of the four warps beside those that multiply, of block `block`;
/// none if it is `movers` or more.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int mover_beside(const moving_blocks& all, int block,
                                                           int warp) noexcept {
  switch (all.who) {
    case gather_movers::all_blocks:
      // By k own columns are multiplied meanwhile, so a block's loader moves last.
      return all.by_rows ? block * 4 + warp : (warp + 3) % 4 * all.blocks + block;
    case gather_movers::warps:
      return warp == 3 ? block : all.movers;
    case gather_movers::storers:
      return warp == 1 || warp == 2 ? (warp - 1) * all.blocks + block : all.movers;
    default:
      return all.movers;
  }
}

/// Whether one of these warps sends packets, each thread some.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool sends_packets(const moving_blocks& all, int block,
                                                             int warp) noexcept {
  const bool every = all.who == gather_movers::all_blocks;
  return every || (all.who == gather_movers::warps && warp == 3 && block < all.movers);
}
/// A thread that sends packets, and of how many.
struct packet_thread {
  int number = 0;
  int threads = 0;
};
/// Thread `thread` of such a warp.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr packet_thread packet_thread_beside(
    const moving_blocks& all, int block, int thread) noexcept {
  const bool every = all.who == gather_movers::all_blocks;
  const int threads = every ? sm90::group_threads : 32;
  return {block * threads + thread % threads, (every ? all.blocks : all.movers) * threads};
}

}  // namespace untax
