#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>
#include <untax/tile/order.hpp>

#include "engines/gpu/gemm/sinks/owner_sums.hpp"
#include "engines/gpu/gemm/sinks/partial_words.cuh"
#include "engines/gpu/sm90/ptx/matrix_transpose.cuh"

namespace untax::gpu {

/// Four words of each of the four lanes of a quad, exchanged: lane q ends with word q of lanes 0 to
/// 3. By all lanes of a warp.
[[nodiscard]] __device__ inline uint4 exchanged_in_quads(uint4 w) {
  constexpr unsigned everybody = 0xffffffffU;
  const bool upper = (threadIdx.x & 2U) != 0;
  const std::uint32_t x = __shfl_xor_sync(everybody, upper ? w.x : w.z, 2);
  const std::uint32_t y = __shfl_xor_sync(everybody, upper ? w.y : w.w, 2);
  w = upper ? make_uint4(x, y, w.z, w.w) : make_uint4(w.x, w.y, x, y);
  const bool odd = (threadIdx.x & 1U) != 0;
  const std::uint32_t a = __shfl_xor_sync(everybody, odd ? w.x : w.y, 1);
  const std::uint32_t b = __shfl_xor_sync(everybody, odd ? w.z : w.w, 1);
  return odd ? make_uint4(a, w.y, b, w.w) : make_uint4(w.x, a, w.z, b);
}

/// This rank's rows of C, or of that of all ranks, as fragments are stored there from registers.
template <class T>
class sum_results {
 public:
  __device__ sum_results(const sums_run& io, int first_row, int end_row)
      : t_(io), how_(io.how), first_row_(first_row), end_row_(end_row) {}

  /// Fragments side by side from `first` on, of which some are wanted. By all lanes of a warp.
  template <int together>
  __device__ void store(const sum_fragment& first, unsigned wanted,
                        const float4 (&sums)[together]) const {
    const int lane = device_warp::thread_rank();
    const int row = how_.row_of(first) + lane / 4;
    if (how_.swap_ab) {
#pragma unroll
      for (int part = 0; part < together; ++part) {
        const std::uint32_t upper = transposed(two_halves(sums[part].x, sums[part].y, T{}));
        const std::uint32_t lower = transposed(two_halves(sums[part].z, sums[part].w, T{}));
        if ((wanted >> part & 1U) == 0) continue;
        const int col = how_.col_of(first) + lane % 4 * 2;
        put(row + part * 8, col, upper);
        put(row + part * 8, col + 8, lower);
      }
    } else if constexpr (together == 4) {
      const auto four = [&](bool lower) {
        const auto two = [&](const float4& s) {
          return lower ? two_halves(s.z, s.w, T{}) : two_halves(s.x, s.y, T{});
        };
        return exchanged_in_quads(
            make_uint4(two(sums[0]), two(sums[1]), two(sums[2]), two(sums[3])));
      };
      const uint4 upper = four(false);
      const uint4 lower = four(true);
      const int part = lane % 4;
      if ((wanted >> part & 1U) == 0) return;
      const int col = how_.col_of(first) + part * 8;
      put(row, col, upper);
      put(row + 8, col, lower);
    }
  }

 private:
  /// Elements of a row, if it is this rank's and they are columns of C.
  template <class Words>
  __device__ void put(int row, int col, const Words& elements) const {
    if (row < first_row_ || row >= end_row_ || col >= how_.n) return;
    const std::int64_t in_c = row - (how_.passes_on ? 0 : first_row_);
    const std::int64_t at = (in_c * t_.moved.c_stride + col) * 2;
    *reinterpret_cast<Words*>(t_.moved.run.out + at) = elements;
    if (!how_.passes_on) return;
    for (int hop = 1; hop < how_.world(); ++hop) {
      const int peer = receiver_at_hop(how_.rank(), hop, how_.world());
      *reinterpret_cast<Words*>(t_.moved.run.out + (peer - how_.rank()) * t_.moved.run.between +
                                at) = elements;
    }
  }

  const sums_run& t_;
  const sum_fragments& how_;
  int first_row_;
  int end_row_;
};

}  // namespace untax::gpu
