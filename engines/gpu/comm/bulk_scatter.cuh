#pragma once

#include <cstdint>

#include <untax/tile/order.hpp>

#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/tile_senders.hpp"
#include "engines/gpu/copy/block_copy.cuh"

namespace untax {

/// A block of a kernel that sends all results when they have been computed, by all its threads: a
/// sender of the protocol, which opens, sends its tiles and closes. The end of the kernel is where
/// blocks meet.
template <class Protocol>
class scattering_block {
 public:
  __device__ scattering_block(const tile_io<Protocol>& io, std::uint64_t epoch)
      : t_(io), me_(static_cast<int>(blockIdx.x)), output_(io, me_, epoch, me_) {}

  __device__ void run() {
    const bool speaks = threadIdx.x < 32;
    if (speaks && me_ == 0) output_.open();
    if (t_.how.world() > 1) send();
    __syncthreads();
    // The host reports failed waits.
    if (speaks && going_) (void)output_.close();
  }

 private:
  __device__ void send() {
    const tile_grid tiles = t_.how.tiles();
    const strided share{me_, t_.senders};
    for (int i = 0; i < share.share_of(tiles.count()); ++i) {
      const int tile = share.at(i);
      send(tiles.rows_of(tile), tiles.cols_of(tile));
    }
  }

  __device__ void send(range rows, range columns) {
    const int rank = t_.how.rank();
    const int ranks = t_.how.world();
    const gpu::moved_operands& moved = t_.moved;
    // What is read is on its way while the others open their C.
    gpu::block_copy words({moved.at({operand::c, rank, rows.begin, columns.begin}), moved.c_stride,
                           moved.c_stride, static_cast<int>(rows.size),
                           static_cast<int>(columns.size)});
    if (!reserved_) going_ = __syncthreads_and(reserve() ? 1 : 0) != 0;
    reserved_ = true;
    if (!going_) return;
    words.write(ranks - 1, [&](int copy) {
      const int peer = receiver_at_hop(rank, copy + 1, ranks);
      return moved.at({operand::c, peer, rows.begin, columns.begin});
    });
  }
  /// By the first warp; all of a rank's tiles go to the same peers, so once is enough.
  [[nodiscard]] __device__ bool reserve() const { return threadIdx.x >= 32 || output_.reserve(); }

  const tile_io<Protocol>& t_;
  int me_;
  output_channel<Protocol> output_;
  bool reserved_ = false;
  bool going_ = true;
};

}  // namespace untax
