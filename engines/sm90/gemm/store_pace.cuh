#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>

namespace untax::sm90 {

/// When a storer asks for the next box of a tile that goes to peers.
///
/// The copy engine of a multiprocessor takes its instructions in turn. Where all blocks ask for all
/// stores of their tiles at once, the link takes them as slowly as it can, and what the loaders ask
/// for waits behind them: nothing is multiplied meanwhile. So boxes go out one by one, over most of
/// the time that the next tile takes, which is as long as the last one took. Behind the last tile
/// nothing is multiplied, and they go as fast as they can.
class store_pace {
 public:
  __device__ store_pace() : before_(cuda_memory::now()) {}

  /// A tile begins to leave, in so many boxes for peers; it may be the last one.
  __device__ void begin_tile(int boxes, bool last) {
    const std::uint64_t now = cuda_memory::now();
    gap_ = last || boxes == 0 ? 0 : (now - before_) * percent / 100 / static_cast<unsigned>(boxes);
    before_ = now;
    // Blocks whose tiles end together do not send together.
    next_ = now + gap_ * (blockIdx.x % phases) / phases;
  }
  /// Until the next box may go.
  __device__ void await() {
    if (gap_ == 0) return;
    while (cuda_memory::now() < next_) __nanosleep(look_nanoseconds);
    next_ += gap_;
  }

 private:
  static constexpr unsigned percent = 75;  // of the time for a tile
  static constexpr unsigned phases = 8;
  static constexpr unsigned look_nanoseconds = 200;

  std::uint64_t before_;
  std::uint64_t gap_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace untax::sm90
