#pragma once

#include "engines/gpu/comm/packet_sender.cuh"
#include "engines/gpu/gemm/io.cuh"

namespace untax {

/// What a thread of the GEMM kernel has to do with sending the rank's shard as packets.
template <class Protocol>
template <class Io>
class packet_senders<Protocol>::view {
 public:
  static constexpr std::size_t comm_smem_bytes = 0;

  explicit __device__ view(const Io& io) : io_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  __device__ void prepare_comm() {
    const auto threads = static_cast<int>(blockDim.x);
    mine_ = {io_.sending, static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x),
             io_.comm_ctas * threads};
  }
  __device__ void prepare_beside(int warp) {
    const moving_blocks moving{io_.who, io_.arrivals.by_rows, io_.multiplying, io_.senders};
    const int number = static_cast<int>(blockIdx.x) - io_.comm_ctas;
    if (!sends_packets(moving, number, warp)) return;
    const packet_thread me = packet_thread_beside(moving, number, static_cast<int>(threadIdx.x));
    mine_ = {io_.sending, me.number, me.threads};
  }
  __device__ void run_comm(std::byte* /*shared*/) { send(static_cast<int>(threadIdx.x) / 32); }
  __device__ void beside(int warp, const gpu::epilogue_smem& /*own*/) { send(warp); }

 private:
  /// The consumer has the first slots of wait records.
  __device__ void send(int warp) {
    const auto warps = static_cast<int>(blockDim.x) / 32;
    const int slot = io_.multiplying * (gpu::warpgroup_threads / 32) +
                     static_cast<int>(blockIdx.x) * warps + warp;
    packet_sender<Io>(io_, epoch_, slot).send(mine_);
  }

  const Io& io_;
  std::uint64_t epoch_ = 0;
  packet_share mine_;
};

}  // namespace untax
