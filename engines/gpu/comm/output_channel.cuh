#pragma once

#include <untax/tile/order.hpp>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/room_waits.cuh"
#include "engines/gpu/gemm/io.hpp"

namespace untax {

/// The verbs of one output on the copies of C, by a warp: lane i speaks to the rank i hops away.
template <class Protocol>
class output_channel {
 public:
  __device__ output_channel(const gpu::with_peers<Protocol>& io, int output, std::uint64_t epoch,
                            int slot)
      : t_(io), output_(output), epoch_(epoch), waits_(io.moved.run, slot) {}

  /// Lets everybody write into this rank's C.
  __device__ void open() const {
    if (gpu::left_out(gpu::mutant::scatter_open)) return;
    signal([&](int hop) {
      const int source = source_at_hop(rank(), hop, world());
      return address{source, t_.how.landing(source, rank(), 0, epoch_).free};
    });
  }
  /// Waits until everybody has let this rank write.
  [[nodiscard]] __device__ bool reserve() const {
    return waits_.await(world() - 1, [&](int i) {
      const int peer = receiver_at_hop(rank(), i + 1, world());
      const room r = t_.how.landing(rank(), peer, output_, epoch_);
      return gpu::pending_wait{counter(r.free), r.needed_free(), 0, peer, r.number, verb::reserve};
    });
  }
  /// Says that this output's tiles are complete everywhere, and waits for its counterparts.
  [[nodiscard]] __device__ bool close() const {
    if (!gpu::left_out(gpu::mutant::scatter_publish)) {
      signal([&](int hop) {
        const int peer = receiver_at_hop(rank(), hop, world());
        return address{peer, t_.how.landing(rank(), peer, output_, epoch_).ready};
      });
    }
    return waits_.await(world() - 1, [&](int i) {
      const int source = source_at_hop(rank(), i + 1, world());
      const room r = t_.how.landing(source, rank(), output_, epoch_);
      return gpu::pending_wait{counter(r.ready), r.use, 0, source, r.number, verb::acquire};
    });
  }

 private:
  struct address {
    int rank;
    int index;
  };

  [[nodiscard]] __device__ int rank() const { return t_.how.rank(); }
  [[nodiscard]] __device__ int world() const { return t_.how.world(); }
  [[nodiscard]] __device__ std::uint64_t* counter(int index) const {
    return t_.moved.run.counters.local(static_cast<std::size_t>(index));
  }
  template <class At>
  __device__ void signal(const At& at) const {
    const int hop = device_warp::thread_rank() + 1;
    if (hop < world()) {
      const address to = at(hop);
      cuda_memory::raise_release(
          *t_.moved.run.counters.at(to.rank, static_cast<std::size_t>(to.index)), epoch_);
    }
    __syncwarp();
  }

  const gpu::with_peers<Protocol>& t_;
  int output_;
  std::uint64_t epoch_;
  gpu::room_waits waits_;
};

}  // namespace untax
