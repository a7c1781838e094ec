#pragma once

#include "ops/all_gather_gemm/gather.cuh"
#include "ops/all_gather_gemm/packet_rows.cuh"
#include "ops/all_gather_gemm/packet_sender.cuh"

namespace untax {

/// The part of a thread of a block in a gather by packets. Who moves, and how a run ends, is as in
/// any gather.
class packet_gather::at_block : public gather_traffic::at_block {
 public:
  static constexpr std::size_t lead_bytes = 0;
  static constexpr bool waits = false;
  static constexpr bool brings = true;
  using rows = packet_rows;

  __device__ at_block(const packet_gather& gather, const CUtensorMap& a, const CUtensorMap& b,
                      const CUtensorMap& c, int slices)
      : gather_traffic::at_block(gather, a, b, c, slices), g_(gather), b_(b), slices_(slices) {}

  __device__ void prepare_to_lead() {
    const auto threads = static_cast<int>(blockDim.x);
    mine_ = {g_.sending, static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x),
             g_.leading * threads};
  }
  __device__ void prepare_beside(int warp) {
    if (!sends_packets(moving(), number(), warp)) return;
    const packet_thread me =
        packet_thread_beside(moving(), number(), static_cast<int>(threadIdx.x));
    mine_ = {g_.sending, me.number, me.threads};
  }
  __device__ void lead(std::byte* /*shared*/) { send(static_cast<int>(threadIdx.x) / 32); }
  __device__ void beside(int warp, const sm90::storer_memory& /*own*/) { send(warp); }

  [[nodiscard]] __device__ rows rows_for(int group) const {
    return {g_, epoch(), group, number() * warps_of_math};
  }
  [[nodiscard]] __device__ sm90::stretch stretch_of(int /*row*/, int /*slice*/) const {
    return {nullptr, 0, &b_, 0, slices_};
  }

 private:
  static constexpr int warps_of_math = sm90::group_threads / 32;

  /// The math has the first slots of wait records.
  __device__ void send(int warp) {
    const auto warps = static_cast<int>(blockDim.x) / 32;
    const int slot = g_.multiplying * warps_of_math + static_cast<int>(blockIdx.x) * warps + warp;
    packet_sender(g_, epoch(), slot).send(mine_);
  }

  const packet_gather& g_;
  const CUtensorMap& b_;
  int slices_;
  packet_share mine_;
};

}  // namespace untax
