#pragma once

#include "engines/gpu/comm/epilogue_sender.cuh"
#include "engines/gpu/comm/run_senders.cuh"
#include "engines/gpu/gemm/io.cuh"

namespace untax {

/// What a thread of the GEMM kernel has to do with sending the rank's shard.
template <class Protocol>
template <class Io>
class shard_senders<Protocol>::view {
 public:
  static constexpr std::size_t comm_smem_bytes = moving_bytes<Protocol>;

  explicit __device__ view(const Io& io) : io_(io), by_rows_(io.arrivals.by_rows) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  /// What there is to send is computed while the kernels ahead end.
  __device__ void prepare_comm() { mine_ = moving_part(io_, static_cast<int>(blockIdx.x)); }
  __device__ void prepare_beside(int warp) {
    const int me = sender_beside(moving(), number(), warp);
    if (me >= io_.senders) return;
    mine_ = io_.sending.part_of({me, io_.senders});
    if (io_.who == gather_senders::epilogue_warps && mine_.chunks > 0)
      epilogue_sender<Protocol>::prepare(io_);
  }

  __device__ void run_comm(std::byte* shared) {
    run_senders(io_, mine_, shared, static_cast<int>(blockIdx.x), epoch_,
                static_cast<int>(gridDim.x));
  }
  /// They push: a pull takes blocks for itself.
  __device__ void beside(int warp, const gpu::epilogue_smem& own) {
    const int me = sender_beside(moving(), number(), warp);
    if (me >= io_.senders) return;
    const int slot = static_cast<int>(gridDim.x) + me;
    if (io_.who == gather_senders::epilogue_warps) {
      epilogue_sender<Protocol> sender(io_, own, epoch_, slot);
      io_.sending.each(mine_, sender);
    } else {
      chunk_sender<Protocol, gpu::by_stores> sender(io_, epoch_, {}, slot);
      io_.sending.each(mine_, sender);
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
  sending_grid::part mine_;
};

}  // namespace untax
