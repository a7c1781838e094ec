#pragma once

#include "ops/all_gather_gemm/gather.cuh"
#include "ops/all_gather_gemm/packet_rows.cuh"
#include "ops/all_gather_gemm/packet_sender.cuh"

namespace untax {

/// The part of a thread of a block in a gather by packets. Who moves, and how a run ends, is as in
/// any gather.
class packet_gather::block_io : public gather_io::block_io {
 public:
  static constexpr std::size_t comm_smem_bytes = 0;
  static constexpr bool waits = false;
  static constexpr bool brings = true;
  using rows = packet_rows;

  __device__ block_io(const packet_gather& gather, const CUtensorMap& a, const CUtensorMap& b,
                      const CUtensorMap& c, int k_blocks)
      : gather_io::block_io(gather, a, b, c, k_blocks), g_(gather), b_(b), k_blocks_(k_blocks) {}

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
  __device__ void beside(int warp, const sm90::epilogue_smem& /*own*/) { send(warp); }

  [[nodiscard]] __device__ rows rows_for(int group) const {
    return {g_, epoch(), group, number() * consumer_warps};
  }
  [[nodiscard]] __device__ sm90::operand_window window_of(int /*row*/, int /*k_block*/) const {
    return {nullptr, 0, &b_, 0, k_blocks_};
  }

 private:
  static constexpr int consumer_warps = sm90::warpgroup_threads / 32;

  /// The consumer has the first slots of wait records.
  __device__ void send(int warp) {
    const auto warps = static_cast<int>(blockDim.x) / 32;
    const int slot = g_.multiplying * consumer_warps + static_cast<int>(blockIdx.x) * warps + warp;
    packet_sender(g_, epoch(), slot).send(mine_);
  }

  const packet_gather& g_;
  const CUtensorMap& b_;
  int k_blocks_;
  packet_share mine_;
};

}  // namespace untax
