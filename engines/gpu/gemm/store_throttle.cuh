#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>

namespace untax::gpu {

/// Decides when an epilogue warp issues the next TMA store of a tile for peers.
///
/// TMA executes its instructions in order. If all blocks issued all stores of their tiles at once,
/// the loads of the producers would queue behind stores that the link limits, and nothing would be
/// multiplied meanwhile. So stores are spread over most of the time of the next tile, which is
/// estimated from the k-blocks up to now. After the last tile nothing is multiplied, and stores are
/// issued at once.
class store_throttle {
 public:
  __device__ store_throttle() : before_(cuda_memory::now()) {}

  /// Counts k-blocks that are multiplied, of a tile or of a part of a tile.
  __device__ void count(int k_blocks) { since_ += static_cast<unsigned>(k_blocks); }
  /// Begins the stores of a tile whose k-blocks have been counted: `tma_tiles` TMA tiles for peers,
  /// while `k_blocks` k-blocks of the next tile are multiplied (0: this is the last tile).
  __device__ void begin_tile(int tma_tiles, int k_blocks) {
    const std::uint64_t now = cuda_memory::now();
    // The block may have been suspended meanwhile, so there is a limit.
    const std::uint64_t k_block = min((now - before_) / max(since_, 1UL), most_k_block_nanoseconds);
    const std::uint64_t time = k_block * static_cast<unsigned>(k_blocks);
    gap_ = tma_tiles > 0 ? time * percent / 100 / static_cast<unsigned>(tma_tiles) : 0;
    before_ = now;
    since_ = 0;
    // Blocks whose tiles end at the same time send at different times.
    next_ = now + gap_ * (blockIdx.x % phases) / phases;
  }
  /// Waits until the next TMA tile may be stored.
  __device__ void await() {
    if (gap_ == 0) return;
    while (cuda_memory::now() < next_) __nanosleep(look_nanoseconds);
    next_ += gap_;
  }

 private:
  static constexpr unsigned percent = 75;  // of the time of the next tile
  static constexpr unsigned phases = 8;
  static constexpr unsigned look_nanoseconds = 200;
  static constexpr std::uint64_t most_k_block_nanoseconds = 2000;  // one of 256 columns takes 700

  std::uint64_t before_;
  std::uint64_t since_ = 0;  // k-blocks since `before_`
  std::uint64_t gap_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace untax::gpu
