#pragma once

#include <cstdint>

#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/trace/kernel_events.cuh"

// What the GEMM kernel notes.

namespace untax::gpu {

/// What a warp of its blocks does. Of an MMA warpgroup the first one speaks for all.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr warp_role role_in_gemm(bool of_comm_cta, int warp) {
  if (of_comm_cta) return warp_role::sender;
  if (warp % 4 == 0) return warp == 0 ? warp_role::producer : warp_role::multiplier;
  if (warp > 4) return warp_role::none;
  return warp == 3 ? warp_role::poller : warp_role::epilogue;
}

/// By all threads, when the kernels ahead have ended. Blocks of lower numbers are communication
/// CTAs.
__device__ inline void note_gemm_begin(const launch_trace& trace, int comm_ctas,
                                       std::uint64_t epoch) {
  note_kernel_begin(
      trace,
      role_in_gemm(static_cast<int>(blockIdx.x) < comm_ctas, static_cast<int>(threadIdx.x) / 32),
      epoch);
}

/// What a launch records with. Kept by value: an argument of a kernel that is reached by its
/// address comes from memory, as late as anything else does.
template <class Given>
[[nodiscard]] __device__ const launch_trace& trace_of(const Given& given) {
  if constexpr (requires { given.moved.run; }) {
    return given.moved.run;
  } else {
    return given;
  }
}

/// What a role does with a tile, from when the first part of it has come.
class tile_note : action_note {
 public:
  __device__ tile_note(const launch_trace& trace, stage_barrier& first, std::uint32_t parity,
                       action what = action::multiply)
      : action_note(behind(trace, first, parity), what) {}

 private:
  [[nodiscard]] __device__ static const launch_trace& behind(const launch_trace& trace,
                                                             stage_barrier& first,
                                                             std::uint32_t parity) {
    if constexpr (kernels_are_traced) first.wait(parity);
    return trace;
  }
};

}  // namespace untax::gpu
