#pragma once

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/gemm/io.hpp"

namespace untax {

/// The verbs of one output on the copies of C, by a warp: lane i speaks to the rank i hops away.
template <class Protocol>
class output_channel {
 public:
  __device__ output_channel(const gpu::with_peers<Protocol>& io, int output, std::uint64_t epoch,
                            int slot)
      : t_(io), output_(output), epoch_(epoch), channel_(io.moved.run, slot) {}

  /// Lets everybody write into this rank's C.
  __device__ void open() const {
    if (gpu::left_out(gpu::mutant::scatter_open)) return;
    channel_.retire(world() - 1, [&](int i) { return landing_from(i, 0); });
  }
  /// Waits until everybody has let this rank write.
  [[nodiscard]] __device__ bool reserve() const {
    return channel_.reserve(world() - 1, [&](int i) { return landing_at(i); });
  }
  /// Says that this output's tiles are complete everywhere, and waits for its counterparts.
  [[nodiscard]] __device__ bool close() const {
    if (!gpu::left_out(gpu::mutant::scatter_publish))
      channel_.publish(world() - 1, [&](int i) { return landing_at(i); });
    return channel_.acquire(world() - 1, [&](int i) { return landing_from(i, output_); });
  }

 private:
  [[nodiscard]] __device__ int world() const { return t_.how.world(); }
  /// Where this rank's tiles lie at the rank i + 1 hops away.
  [[nodiscard]] __device__ room landing_at(int i) const {
    const int rank = t_.how.rank();
    return t_.how.landing(rank, receiver_at_hop(rank, i + 1, world()), output_, epoch_);
  }
  /// Where tiles of that rank lie here.
  [[nodiscard]] __device__ room landing_from(int i, int output) const {
    const int rank = t_.how.rank();
    return t_.how.landing(source_at_hop(rank, i + 1, world()), rank, output, epoch_);
  }

  const gpu::with_peers<Protocol>& t_;
  int output_;
  std::uint64_t epoch_;
  gpu::warp_channel channel_;
};

}  // namespace untax
