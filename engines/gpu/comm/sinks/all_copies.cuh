#pragma once

#include <untax/memory/cuda_memory.cuh>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/sinks/all_copies.hpp"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax {

/// Tells where a thread's part of C goes, and signals to peers what has been stored.
template <class Protocol>
template <class Io>
class all_copies<Protocol>::view {
 public:
  __device__ view(const Io& io, const gpu::gemm_arguments& /*given*/) : io_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  [[nodiscard]] __device__ gpu::copy_hops copies_of(int /*row*/) const {
    return {0, io_.way == scatter_way::store_to_peers && reserved_ ? io_.how.world() : 1};
  }
  [[nodiscard]] __device__ gpu::destination copy_of(int row, int hop) const {
    return {&io_.c[hop], row};
  }
  [[nodiscard]] __device__ int world() const { return io_.how.world(); }
  /// Whether the stores of a tile have to complete before its epilogue buffers are used again.
  [[nodiscard]] __device__ bool in_turn() const { return io_.in_turn; }

  /// Called by an epilogue warp. Waits until peers have opened their C, if it stores to them. If
  /// the wait fails, it stores nothing to them.
  __device__ void before_store() {
    if (io_.way == scatter_way::store_to_peers) reserved_ = output().reserve();
  }
  /// The thread that stores the last part of a tile flags the tile.
  __device__ void after_tile(const gpu::tile_place& tile) {
    if (io_.way != scatter_way::tile_flags) return;
    if (!gpu::left_out(gpu::mutant::scatter_tma_wait)) gpu::tma_store_wait();
    const int index = io_.how.tile_at(tile.row, tile.column);
    if (index < 0 || count(io_.parts_done[index]) != epoch_ * static_cast<std::uint64_t>(io_.parts))
      return;
    gpu::warp_channel(io_.moved.run, 0).publish(io_.how.tile_flag(index, epoch_));
  }

  [[nodiscard]] __device__ bool has_stored() const { return reserved_; }
  /// The last block that has stored everything publishes the output, and waits for what peers store
  /// here. If a peer has not opened its C, nothing was stored to peers, and nothing is published.
  __device__ void finish(bool stored) const {
    if (io_.way == scatter_way::store_to_peers && stored)
      (void)close_as_last(output(), *io_.done, static_cast<unsigned>(io_.multiplying));
  }

 private:
  /// The output of all blocks that multiply, used by this warp.
  [[nodiscard]] __device__ output_channel<Protocol> output() const {
    return {io_, 0, epoch_, slot_of_storing_warp()};
  }

  const Io& io_;
  std::uint64_t epoch_ = 0;
  bool reserved_ = true;
};

}  // namespace untax
