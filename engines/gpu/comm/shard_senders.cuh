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
/// Of shared memory, for the senders of a block.
inline constexpr int sender_bytes = sender_warps * static_cast<int>(sizeof(warp_ring::memory));

/// The number of the thread's warp as a sender, of block `block`; -1 if it is none.
[[nodiscard]] __device__ inline int sender_number(int block) {
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  return warp < sender_warps ? block * sender_warps + warp : -1;
}

/// By all threads of a block: calls `run(sender, ring)` in the warps that move. `sender` numbers
/// them over all blocks, of which this is number `block`.
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

/// Of shared memory, for the senders of a block, at a multiple of 128 bytes.
template <class Protocol>
inline constexpr int moving_bytes =
    std::max(gpu::sender_bytes, static_cast<int>(sizeof(typename tma_push<Protocol>::memory)));

/// The part of the thread's warp in such a block. With TMA tiles no warp has a part of its own.
template <class Protocol>
[[nodiscard]] __device__ comm::sender_list moving_part(const shard_io<Protocol>& io, int block) {
  if (io.tma_tiles || io.how.pulls()) return {};
  const int me = gpu::sender_number(block);
  if (me < 0 || me >= io.senders) return {};
  return {io.lists, me};
}

/// The senders of a block that only moves, by all of its threads. Wait records of senders begin at
/// `first_slot`. `mine` is the part of the thread's warp, see `moving_part`.
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

  /// Computes what to send, while the kernels ahead end.
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
  /// These warps push: a pull has blocks of its own.
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
