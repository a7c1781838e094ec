#pragma once

#include <algorithm>
#include <cstddef>

#include <untax/rma/bulk_ring.cuh>

#include "engines/gpu/comm/shard_sender.cuh"
#include "engines/gpu/comm/step_sender.cuh"
#include "engines/gpu/comm/tma_push.cuh"
#include "engines/gpu/gemm/io.cuh"

namespace untax::gpu {

using warp_ring = bulk_ring<2>;
/// Bytes of shared memory for the senders of a block.
inline constexpr int sender_bytes = sender_warps * static_cast<int>(sizeof(warp_ring::memory));

/// The sender number of the calling warp in block `block`, or -1 if it is not a sender.
[[nodiscard]] __device__ inline int sender_number(int block) {
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  return warp < sender_warps ? block * sender_warps + warp : -1;
}

/// Calls `run(sender, ring)` in the sender warps of a block. All of its threads must call this.
/// `sender` numbers the sender warps over all blocks, of which this is number `block`.
template <class Run>
__device__ void each_sender_warp(std::byte* shared, int block, const Run& run) {
  const int me = sender_number(block);
  if (me < 0) return;
  warp_ring ring(device_warp(),
                 reinterpret_cast<warp_ring::memory*>(shared)[static_cast<int>(threadIdx.x) / 32]);
  run(me, ring);
}

}  // namespace untax::gpu

namespace untax {

/// Bytes of shared memory for the senders of a block. It begins at a multiple of 128 bytes.
template <class Protocol>
inline constexpr int moving_bytes =
    std::max(gpu::sender_bytes, static_cast<int>(sizeof(typename tma_push<Protocol>::memory)));

/// The calling warp's list in a block that only sends. With TMA tiles no warp has its own list.
template <class Protocol>
[[nodiscard]] __device__ comm::sender_list moving_part(const shard_io<Protocol>& io, int block) {
  if (io.tma_tiles || io.how.pulls()) return {};
  const int me = gpu::sender_number(block);
  if (me < 0 || me >= io.senders) return {};
  return {io.lists, me};
}

/// Runs the senders of a block that only sends. All of its threads must call this. Wait records of
/// senders begin at `first_slot`. `mine` is the calling warp's list, see `moving_part`.
template <class Protocol>
__device__ void run_senders(const shard_io<Protocol>& io, const comm::sender_list& mine,
                            std::byte* shared, int block, std::uint64_t epoch, int first_slot) {
  if (io.tma_tiles) {
    // The host reports failed waits.
    (void)tma_push<Protocol>::run(io,
                                  *reinterpret_cast<typename tma_push<Protocol>::memory*>(shared),
                                  block, epoch, first_slot + block);
    return;
  }
  gpu::each_sender_warp(shared, block, [&](int me, gpu::warp_ring& ring) {
    using copier = gpu::by_bulk_copies<gpu::warp_ring>;
    if (io.how.pulls()) {
      gpu::step_sender<copier> sender(io.moved, {ring}, first_slot + me);
      io.how.move(me, epoch, sender);
      sender.finish();
    } else {
      chunk_sender<Protocol, copier> sender(io, epoch, {ring}, first_slot + me);
      mine.each(sender);
    }
  });
}

/// A thread's part in sending the rank's shard, within the GEMM kernel.
template <class Protocol>
template <class Io>
class shard_senders<Protocol>::view {
 public:
  static constexpr std::size_t comm_smem_bytes = moving_bytes<Protocol>;

  explicit __device__ view(const Io& io) : io_(io), by_rows_(io.arrivals.by_rows) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  /// Finds the list to send, while kernels ahead still run.
  __device__ void prepare_comm() { mine_ = moving_part(io_, static_cast<int>(blockIdx.x)); }
  __device__ void prepare_beside(int warp) {
    const int me = sender_beside(moving(), number(), warp);
    if (me >= io_.senders) return;
    mine_ = {io_.lists, me};
    if (io_.who == gather_senders::epilogue_warps && mine_.count() > 0)
      epilogue_sender<Protocol>::prepare(io_);
  }

  __device__ void run_comm(std::byte* shared) {
    run_senders(io_, mine_, shared, static_cast<int>(blockIdx.x), epoch_,
                static_cast<int>(gridDim.x));
  }
  /// These warps push; only blocks that do nothing else pull.
  __device__ void beside(int warp, const gpu::epilogue_smem& own) {
    const int me = sender_beside(moving(), number(), warp);
    if (me >= io_.senders) return;
    const int slot = static_cast<int>(gridDim.x) + me;
    if (io_.who == gather_senders::epilogue_warps) {
      epilogue_sender<Protocol> sender(io_, own, epoch_, slot);
      mine_.each(sender);
    } else {
      chunk_sender<Protocol, gpu::by_stores> sender(io_, epoch_, {}, slot);
      mine_.each(sender);
    }
  }

 private:
  /// The number of this block among those that multiply.
  [[nodiscard]] __device__ int number() const {
    return static_cast<int>(blockIdx.x) - io_.comm_ctas;
  }
  [[nodiscard]] __device__ moving_blocks moving() const {
    return {io_.who, by_rows_, io_.multiplying, io_.senders};
  }

  const shard_io<Protocol>& io_;
  const bool& by_rows_;
  std::uint64_t epoch_ = 0;
  comm::sender_list mine_;
};

}  // namespace untax
