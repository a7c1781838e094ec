#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>
#include <untax/tile/order.hpp>

#include "engines/gpu/comm/sinks/owner_sums.hpp"
#include "engines/gpu/sm90/ptx/matrix_transpose.cuh"
#include "engines/gpu/words/partial_words.cuh"

namespace untax::gpu {

/// Exchanges four words of each lane within quads: lane q ends with word q of lanes 0 to 3. All
/// lanes of a warp must call this.
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

inline constexpr int stored_together = 4;  ///< adjacent fragments

/// Stores sums from registers to this rank's rows of C, or to these rows of all ranks.
template <class T>
class sum_results {
 public:
  __device__ sum_results(const sums_run& io, int first_row, int end_row)
      : io_(io), how_(io.how), first_row_(first_row), end_row_(end_row) {}

  /// Stores the `wanted` fragments, from `first` on. All lanes of a warp must call this.
  template <bool swap_ab>
  __device__ void store(const sum_fragment& first, unsigned wanted,
                        const float4 (&sums)[stored_together]) const {
    const int lane = device_warp::thread_rank();
    const int row = how_.row_of(first) + lane / 4;
    if constexpr (swap_ab) {
      const int col = how_.col_of(first) + lane % 4 * 2;
      std::uint32_t left[stored_together];
      std::uint32_t right[stored_together];
#pragma unroll
      for (int part = 0; part < stored_together; ++part) {
        left[part] = transposed(two_halves(sums[part].x, sums[part].y, T{}));
        right[part] = transposed(two_halves(sums[part].z, sums[part].w, T{}));
        if (!is_own(row + part * 8)) wanted &= ~(1U << part);
      }
      each_copy(row, col, [&](std::byte* c) {
#pragma unroll
        for (int part = 0; part < stored_together; ++part) {
          if ((wanted >> part & 1U) == 0) continue;
          auto* const to = reinterpret_cast<std::uint32_t*>(c + part * 8 * io_.moved.c_stride * 2);
          if (col < how_.n) to[0] = left[part];
          if (col + 8 < how_.n) to[4] = right[part];
        }
      });
    } else {
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
      const int col = how_.col_of(first) + part * 8;
      if ((wanted >> part & 1U) == 0 || col >= how_.n) return;
      each_copy(row, col, [&](std::byte* c) {
        if (is_own(row)) *reinterpret_cast<uint4*>(c) = upper;
        if (is_own(row + 8)) *reinterpret_cast<uint4*>(c + 8 * io_.moved.c_stride * 2) = lower;
      });
    }
  }

 private:
  [[nodiscard]] __device__ bool is_own(int row) const {
    return row >= first_row_ && row < end_row_;
  }
  /// Calls `store` with the address of an element in this rank's C and, if sums are passed on, in
  /// the C of each peer.
  template <class Store>
  __device__ void each_copy(int row, int col, const Store& store) const {
    const std::int64_t in_c = row - (how_.passes_on ? 0 : first_row_);
    std::byte* const own = io_.moved.run.out + (in_c * io_.moved.c_stride + col) * 2;
    int left = how_.passes_on ? how_.world() : 1;
    // The order of receiver_at_hop, without its division.
    int peer = how_.rank();
#pragma unroll 1
    do {
      store(own + (peer - how_.rank()) * io_.moved.run.between);
      peer = peer + 1 < how_.world() ? peer + 1 : 0;
    } while (--left > 0);
  }

  const sums_run& io_;
  const sum_fragments& how_;
  int first_row_;
  int end_row_;
};

}  // namespace untax::gpu
