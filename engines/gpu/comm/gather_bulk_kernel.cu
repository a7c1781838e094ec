#include "engines/gpu/comm/gather_kernels.cuh"
#include "engines/gpu/copy/copiers.cuh"

namespace untax {
namespace {

/// A block of a kernel that gathers all of A: a sender of the protocol, which then awaits its share
/// of peers' chunks. All threads call its functions. Only the kernel's end synchronises blocks.
class gathering_block {
 public:
  __device__ gathering_block(const bulk_gather& what, std::uint64_t epoch)
      : w_(what),
        share_{static_cast<int>(blockIdx.x), what.senders},
        epoch_(epoch),
        channel_(what.moved.run, static_cast<int>(blockIdx.x)) {}

  /// Executes the verbs of the protocol for each chunk: reserve, move, publish.
  __device__ void send() {
    comm::sender_list(w_.lists, share_.worker).each([&](const comm::transfer& p) {
      send_chunk(p);
    });
  }

  __device__ void receive() const {
    if (going_ && threadIdx.x < 32)
      await_incoming(w_.receiving, share_, w_.moved.run, w_.sets, epoch_);
  }

 private:
  __device__ void send_chunk(const comm::transfer& p) {
    const int hop = p.first_hop;
    const int hops = p.hops;
    const int rows = w_.shard.rows_of(p);
    if (rows == 0) return;
    const gpu::moved_operands& moved = w_.moved;
    const sent_shard& shard = w_.shard;
    const auto* const own = reinterpret_cast<const std::uint16_t*>(moved.run.in);
    // The loads are in flight while the epoch is loaded and while the block waits to reserve.
    gpu::block_copy words(
        {own + p.row * moved.a_stride + p.col, moved.a_stride, moved.inbox_stride, rows, p.cols});
    const int set = w_.sets.set_of(epoch_);
    const std::uint64_t use = w_.sets.use_of(epoch_);
    if (!reserved_ && shard.counted)
      going_ = __syncthreads_and(reserve(set, use, hop, hops) ? 1 : 0) != 0;
    reserved_ = true;
    if (going_) {
      const std::int64_t there =
          (shard.inbox_row + std::int64_t{set} * shard.set_rows + p.row) * moved.inbox_stride +
          shard.inbox_column + p.col;
      words.write(hops, [&](int copy) {
        return reinterpret_cast<std::uint16_t*>(moved.run.inbox.at(peer(hop + copy))) + there;
      });
    }
    __syncthreads();
    const auto to = static_cast<int>(threadIdx.x);
    if (!going_ || to >= hops) return;
    channel_.publish(shard.inbox_room(set, peer(hop + to), p.publish, use));
  }

  /// The first warp waits. A rank's readers are the same for all of its rooms, so one wait is
  /// enough. What a rank sends to itself is ordered by the end of the run.
  [[nodiscard]] __device__ bool reserve(int set, std::uint64_t use, int hop, int hops) const {
    if (threadIdx.x >= 32) return true;
    return channel_.reserve(hops, [&](int i) {
      const int to = peer(hop + i);
      return to == w_.receiving.rank ? room{} : w_.shard.inbox_room(set, to, w_.shard.ready, use);
    });
  }

  [[nodiscard]] __device__ int peer(int hop) const {
    return receiver_at_hop(w_.receiving.rank, hop, w_.receiving.ranks);
  }

  const bulk_gather& w_;
  strided share_;
  std::uint64_t epoch_;
  gpu::warp_channel channel_;
  bool reserved_ = false;
  bool going_ = true;
};

__global__ void __launch_bounds__(gpu::copying_threads)
    gather_kernel(const __grid_constant__ bulk_gather what, std::uint64_t* epochs) {
  if (what.dry()) return;
  gather_in_block(what.moved.run, epochs, [&](int /*block*/, std::uint64_t epoch) {
    gathering_block block(what, epoch);
    block.send();
    block.receive();
  });
}

}  // namespace

void gather_all(const bulk_gather& what, std::uint64_t* epochs, bool early, cudaStream_t stream) {
  gpu::prefer_shared_memory(gather_kernel);
  gpu::start_pdl(early, gather_kernel, what.senders, gpu::copying_threads, stream,
                 "cannot start a gather", what, epochs);
}

}  // namespace untax
