#pragma once

#include "engines/gpu/comm/packet_senders.cuh"
#include "engines/gpu/gemm/sources/gathered.cuh"
#include "engines/gpu/gemm/sources/packet_rows.cuh"

namespace untax {

/// A as packets. How a run ends is as in any gather.
template <class Protocol>
template <class Io>
class gathered_packets<Protocol>::view : gathered<Protocol>::template view<Io> {
  using base = typename gathered<Protocol>::template view<Io>;

 public:
  using rows = packet_rows<Io>;

  __device__ view(const Io& io, const gpu::gemm_arguments& given)
      : base(io, given), g_(io), b_(given.b), k_blocks_(given.schedule.k_blocks) {}

  __device__ void begin(std::uint64_t epoch) {
    base::begin(epoch);
    epoch_ = epoch;
  }
  using base::counts_readers;
  using base::retire;

  [[nodiscard]] __device__ rows rows_for(int group) const {
    constexpr int consumer_warps = gpu::warpgroup_threads / 32;
    return {g_, epoch_, group, (static_cast<int>(blockIdx.x) - g_.comm_ctas) * consumer_warps};
  }
  [[nodiscard]] __device__ gpu::operand_window window_of(int /*row*/, int /*k_block*/) const {
    return {nullptr, 0, &b_, 0, k_blocks_};
  }

 private:
  const Io& g_;
  const CUtensorMap& b_;
  int k_blocks_;
  std::uint64_t epoch_ = 0;
};

}  // namespace untax
