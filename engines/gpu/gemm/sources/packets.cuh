#pragma once

#include "engines/gpu/comm/packet_sender.cuh"
#include "engines/gpu/gemm/sources/gathered.cuh"
#include "engines/gpu/gemm/sources/packet_rows.cuh"

namespace untax {

/// The part of a thread of a block in a gather by packets. Who moves, and how a run ends, is as in
/// any gather.
template <class Protocol>
class gathered_packets<Protocol>::block_io : public gathered<Protocol>::block_io {
  using base = typename gathered<Protocol>::block_io;

 public:
  static constexpr std::size_t comm_smem_bytes = 0;
  static constexpr bool waits = false;
  static constexpr bool brings = true;
  using rows = packet_rows<Protocol>;

  __device__ block_io(const gathered_packets& gather, const CUtensorMap& a, const CUtensorMap& b,
                      const CUtensorMap& c, int k_blocks)
      : base(gather, a, b, c, k_blocks), g_(gather), b_(b), k_blocks_(k_blocks) {}

  __device__ void prepare_comm() {
    const auto threads = static_cast<int>(blockDim.x);
    mine_ = {g_.sending, static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x),
             g_.comm_ctas * threads};
  }
  __device__ void prepare_beside(int warp) {
    if (!sends_packets(moving(), number(), warp)) return;
    const packet_thread me =
        packet_thread_beside(moving(), number(), static_cast<int>(threadIdx.x));
    mine_ = {g_.sending, me.number, me.threads};
  }
  __device__ void run_comm(std::byte* /*shared*/) { send(static_cast<int>(threadIdx.x) / 32); }
  __device__ void beside(int warp, const gpu::epilogue_smem& /*own*/) { send(warp); }

  [[nodiscard]] __device__ rows rows_for(int group) const {
    return {g_, epoch(), group, number() * consumer_warps};
  }
  [[nodiscard]] __device__ gpu::operand_window window_of(int /*row*/, int /*k_block*/) const {
    return {nullptr, 0, &b_, 0, k_blocks_};
  }

 private:
  using base::epoch;
  using base::moving;
  using base::number;
  static constexpr int consumer_warps = gpu::warpgroup_threads / 32;

  /// The consumer has the first slots of wait records.
  __device__ void send(int warp) {
    const auto warps = static_cast<int>(blockDim.x) / 32;
    const int slot = g_.multiplying * consumer_warps + static_cast<int>(blockIdx.x) * warps + warp;
    packet_sender<Protocol>(g_, epoch(), slot).send(mine_);
  }

  const gathered_packets& g_;
  const CUtensorMap& b_;
  int k_blocks_;
  packet_share mine_;
};

}  // namespace untax
