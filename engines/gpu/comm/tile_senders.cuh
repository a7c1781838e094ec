#pragma once

#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/tile_sender.cuh"
#include "engines/gpu/gemm/io.cuh"

namespace untax {

/// What a thread of the GEMM kernel has to do with sending tiles.
template <class Protocol>
template <class Io>
class tile_senders<Protocol>::view {
 public:
  static constexpr std::size_t comm_smem_bytes = sizeof(typename tile_sender<Protocol>::memory);

  explicit __device__ view(const Io& io) : io_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }
  __device__ void prepare_comm() {}
  __device__ void prepare_beside(int /*warp*/) {}

  /// One warp of the CTA issues TMA copies.
  __device__ void run_comm(std::byte* shared) {
    if (threadIdx.x >= 32) return;
    const auto me = static_cast<int>(blockIdx.x);
    using sender = tile_sender<Protocol>;
    sender::run(io_, *reinterpret_cast<typename sender::memory*>(shared), me, epoch_, me);
  }
  /// One warp of the rank opens C for the others.
  __device__ void beside(int warp, const gpu::epilogue_smem& /*own*/) {
    const auto block = static_cast<int>(blockIdx.x);
    if (io_.way == scatter_way::store_to_peers && block == io_.comm_ctas && warp == 3)
      output_channel<Protocol>(io_, 0, epoch_, block).open();
  }

 private:
  const tile_io<Protocol>& io_;
  std::uint64_t epoch_ = 0;
};

}  // namespace untax
