#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>

namespace untax::gpu {

/// When an epilogue warp issues the next TMA store of a tile that goes to peers.
///
/// TMA takes its instructions in turn. Where all blocks ask for all
/// stores of their tiles at once, the link takes them as slowly as it can, and what the producers
/// ask for waits behind them: nothing is multiplied meanwhile. So TMA tiles go out one by one, over
/// most of the time that what follows takes, by what k-blocks have taken up to now. Behind the last
/// tile nothing is multiplied, and they go as fast as they can.
class store_throttle {
 public:
  __device__ store_throttle() : before_(cuda_memory::now()) {}

  /// So many k-blocks are multiplied, of a tile or of a part of one.
  __device__ void count(int k_blocks) { since_ += static_cast<unsigned>(k_blocks); }
  /// A tile, the k-blocks of which have been counted, begins to leave, in so many TMA tiles for
  /// peers, while so many k-blocks are multiplied: 0 if it is the last one.
  __device__ void begin_tile(int tma_tiles, int k_blocks) {
    const std::uint64_t now = cuda_memory::now();
    // A block that was stopped does not stop its peers for as long again.
    const std::uint64_t k_block = least((now - before_) / since_, most_k_block_nanoseconds);
    const std::uint64_t time = k_block * static_cast<unsigned>(k_blocks);
    gap_ = tma_tiles > 0 ? time * percent / 100 / static_cast<unsigned>(tma_tiles) : 0;
    before_ = now;
    since_ = 0;
    // Blocks whose tiles end together do not send together.
    next_ = now + gap_ * (blockIdx.x % phases) / phases;
  }
  /// Until the next TMA tile may go.
  __device__ void await() {
    if (gap_ == 0) return;
    while (cuda_memory::now() < next_) __nanosleep(look_nanoseconds);
    next_ += gap_;
  }

 private:
  [[nodiscard]] static __device__ std::uint64_t least(std::uint64_t a, std::uint64_t b) {
    return a < b ? a : b;
  }

  static constexpr unsigned percent = 75;  // of the time for what follows
  static constexpr unsigned phases = 8;
  static constexpr unsigned look_nanoseconds = 200;
  static constexpr std::uint64_t most_k_block_nanoseconds = 2000;  // one of 256 columns takes 700

  std::uint64_t before_;
  std::uint64_t since_ = 0;  // k-blocks
  std::uint64_t gap_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace untax::gpu
